#include "certificates.hpp"

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cstdio>
#include <stdexcept>
#include <utility>

namespace leasehold::test {
namespace {

void expect(bool worked) {
  if (!worked) throw std::runtime_error("OpenSSL could not make a certificate");
}

void add_extension(X509* to, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, to, nullptr, nullptr, 0);
  X509_EXTENSION* made = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  expect(made != nullptr);
  X509_add_ext(to, made, -1);
  X509_EXTENSION_free(made);
}

template <class Write>
void write_file(const std::filesystem::path& file, Write write) {
  std::FILE* out = std::fopen(file.c_str(), "w");
  expect(out != nullptr);
  ::chmod(file.c_str(), 0600);
  const bool worked = write(out) == 1;
  std::fclose(out);
  expect(worked);
}

}  // namespace

certificate_authority::certificate_authority(std::filesystem::path directory, std::string name)
    : directory_(std::move(directory)), name_(std::move(name)), key_(EVP_EC_gen("P-256")) {
  own_ = make({.common_name = name_, .alternatives = {}}, key_.get(), true);
  write_file(file(), [&](std::FILE* out) { return PEM_write_X509(out, own_.get()); });
}

std::filesystem::path certificate_authority::file() const { return directory_ / (name_ + ".pem"); }

certificate_authority::certificate_ptr certificate_authority::make(const subject& whose,
                                                                   EVP_PKEY* key,
                                                                   bool is_authority) {
  constexpr long day_s = 86'400;
  certificate_ptr made{X509_new()};
  expect(made != nullptr && X509_set_version(made.get(), X509_VERSION_3) == 1);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), serial_++);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -2 * day_s);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), whose.days * day_s);
  X509_NAME* name = X509_get_subject_name(made.get());
  if (!whose.common_name.empty()) {
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(whose.common_name.c_str()),
                               -1, -1, 0);
  }
  X509* issuer = is_authority ? made.get() : own_.get();
  X509_set_issuer_name(made.get(), X509_get_subject_name(issuer));
  X509_set_pubkey(made.get(), key);
  add_extension(made.get(), issuer, NID_basic_constraints,
                is_authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
  if (!whose.alternatives.empty()) {
    add_extension(made.get(), issuer, NID_subject_alt_name, whose.alternatives);
  }
  expect(X509_sign(made.get(), key_.get(), EVP_sha256()) > 0);
  return made;
}

certificate_files certificate_authority::issue(const std::string& as, const subject& whose) {
  const key_ptr key{EVP_EC_gen("P-256")};
  const auto made = make(whose, key.get(), false);
  certificate_files out{directory_ / (as + ".cert.pem"), directory_ / (as + ".key.pem")};
  write_file(out.certificate, [&](std::FILE* to) { return PEM_write_X509(to, made.get()); });
  write_file(out.key, [&](std::FILE* to) {
    return PEM_write_PrivateKey(to, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  return out;
}

}  // namespace leasehold::test
