// Certificates for tests, made when the test runs, so that none of them is in the tree to expire.
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <filesystem>
#include <memory>
#include <string>

namespace leasehold::test {

/// A certificate and its key in files (PEM); the key is its owner's alone.
struct certificate_files {
  std::filesystem::path certificate;
  std::filesystem::path key;
};

/// Whose a certificate is.
struct subject {
  std::string common_name;
  /// Alternative names as OpenSSL writes them ("DNS:localhost,IP:127.0.0.1"); empty: none.
  std::string alternatives;
  int days = 1;  ///< from now; below 0: it has expired
};

/// Signs certificates with a key of its own.
class certificate_authority {
 public:
  certificate_authority(std::filesystem::path directory, std::string name);
  /// Its own certificate: who trusts it trusts those that it signed.
  [[nodiscard]] std::filesystem::path file() const;
  /// Files are named by `as`; those that are there are written over.
  certificate_files issue(const std::string& as, const subject& whose);

 private:
  struct free_key {
    void operator()(EVP_PKEY* what) const { EVP_PKEY_free(what); }
  };
  struct free_certificate {
    void operator()(X509* what) const { X509_free(what); }
  };
  using key_ptr = std::unique_ptr<EVP_PKEY, free_key>;
  using certificate_ptr = std::unique_ptr<X509, free_certificate>;

  certificate_ptr make(const subject& whose, EVP_PKEY* key, bool is_authority);

  std::filesystem::path directory_;
  std::string name_;
  long serial_ = 1;
  key_ptr key_;
  certificate_ptr own_;
};

}  // namespace leasehold::test
