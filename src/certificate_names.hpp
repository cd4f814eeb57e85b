// The names that a certificate gives its owner.
#pragma once

#include <openssl/x509.h>

#include <string>
#include <vector>

namespace leasehold::server {

/// The URI and DNS names of the subject's alternative names, as they stand there; without any, the
/// subject's common name where there is exactly one. A name with a control character, or of more
/// than 255 bytes, is none.
std::vector<std::string> names_of(const X509& certificate);

/// Whether a principal can be known by this text: 1 to 255 bytes without control characters.
bool is_certificate_name(const std::string& text) noexcept;

}  // namespace leasehold::server
