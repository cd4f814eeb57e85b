// What jemalloc is told, which leaseholdd is linked with. Millions of leases live long between the
// frames that come and go: glibc's allocator spent more of a renew than everything else together,
// looking through the holes that this leaves.

/// Read by jemalloc before main. What was freed goes back to the system within two seconds, by a
/// thread of the allocator's own: memory that slow readers took is not kept.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "background_thread:true,dirty_decay_ms:2000,muzzy_decay_ms:0";
}
