#include "src/certificate_names.hpp"

#include <openssl/x509v3.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>

namespace leasehold::server {
namespace {

constexpr std::size_t longest_name = 255;

/// The whole string, also behind a zero byte: what is cut off there could be somebody else's name.
std::string text_of(const ASN1_STRING* from) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(from)),
          static_cast<std::size_t>(ASN1_STRING_length(from))};
}

std::vector<std::string> alternative_names_of(const X509& certificate) {
  std::vector<std::string> out;
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> all{
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free};
  for (int i = 0; all && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* one = sk_GENERAL_NAME_value(all.get(), i);
    if (one->type == GEN_URI || one->type == GEN_DNS) out.push_back(text_of(one->d.ia5));
  }
  return out;
}

std::optional<std::string> common_name_of(const X509& certificate) {
  const X509_NAME* subject = X509_get_subject_name(&certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) return std::nullopt;
  unsigned char* utf8 = nullptr;
  const int length =
      ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (length < 0) return std::nullopt;
  std::string out(reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(length));
  OPENSSL_free(utf8);
  return out;
}

}  // namespace

bool is_certificate_name(const std::string& text) noexcept {
  return !text.empty() && text.size() <= longest_name &&
         std::ranges::none_of(text, [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; });
}

std::vector<std::string> names_of(const X509& certificate) {
  auto out = alternative_names_of(certificate);
  if (out.empty()) {
    if (auto name = common_name_of(certificate)) out.push_back(std::move(*name));
  }
  std::erase_if(out, [](const std::string& name) { return !is_certificate_name(name); });
  return out;
}

}  // namespace leasehold::server
