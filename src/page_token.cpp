#include "src/page_token.hpp"

#include "src/auth.hpp"

namespace leasehold::server {
namespace {

/// A checksum and no secret: a caller may see every id of its tenant anyway.
std::string mark_of(const protocol::tenant_id& tenant, std::string_view id) {
  return token_name(hash_token("page " + tenant.value + "/" + std::string(id)));
}

}  // namespace

std::string make_page_token(const protocol::tenant_id& tenant, std::string_view last) {
  if (last.empty()) return {};
  return mark_of(tenant, last) + "." + std::string(last);
}

std::optional<std::string> read_page_token(const protocol::tenant_id& tenant,
                                           std::string_view token) {
  const std::size_t dot = token.find('.');
  if (dot == std::string_view::npos || dot + 1 == token.size()) return std::nullopt;
  std::string id(token.substr(dot + 1));
  if (token.substr(0, dot) != mark_of(tenant, id)) return std::nullopt;
  return id;
}

}  // namespace leasehold::server
