# Tests of the server around its sockets.
if(TARGET leasehold_server)
  leasehold_test(options_test unit options_test.cpp LIBS leasehold_server)
  leasehold_test(principals_test unit principals_test.cpp file_access_test.cpp LIBS leasehold_server)
  leasehold_test(logging_test unit logging_test.cpp metrics_test.cpp LIBS leasehold_server)
  leasehold_test(http_api_test unit http_api_test.cpp http_jobs_test.cpp http_evidence_test.cpp
    http_job_dispatch_test.cpp http_dispatches_test.cpp http_keys_test.cpp http_locks_test.cpp session_test.cpp
    access_table_test.cpp openapi_test.cpp LIBS leasehold_server)
  leasehold_test(target_leases_page_test unit target_leases_page_test.cpp
    LIBS leasehold_server)
endif()
