#include "src/principals.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "src/certificate_names.hpp"
#include "src/config_text.hpp"
#include "src/config_units.hpp"
#include "src/file_access.hpp"
#include "src/toml_text.hpp"

namespace leasehold::server {
namespace {

using actors::role;

constexpr std::array<std::pair<role, std::string_view>, 4> roles{{{role::worker, "worker"},
                                                                  {role::client, "client"},
                                                                  {role::operator_, "operator"},
                                                                  {role::auditor, "auditor"}}};

constexpr std::array<std::string_view, 9> entry_keys{
    "name",     "tenant",      "roles",
    "tokens",   "certificate", "queues",
    "programs", "max_leases",  "requests_per_second"};

class reader {
 public:
  explicit reader(const std::string& name) : name_(name) {}

  void read(const toml::table& root) {
    for (const auto& [key, node] : root) {
      if (key != "principal")
        refuse(node, "there is no key " + std::string(key.str()) +
                         "; the file holds [[principal]] tables");
    }
    const toml::array* all = root["principal"].as_array();
    if (all == nullptr) return;
    for (const toml::node& node : *all) {
      const toml::table* entry = node.as_table();
      if (entry == nullptr) {
        refuse(node, "principal must be a table: [[principal]]");
      } else {
        read_entry(*entry);
      }
      if (fault) return;
    }
  }

  principal_set found;
  std::optional<principals_fault> fault;

 private:
  void refuse(const toml::node& node, const std::string& what) {
    if (fault) return;
    fault = principals_fault{place_of(name_, node.source()) + ": " + what +
                             (what.ends_with('?') ? "" : ".")};
  }

  void read_entry(const toml::table& entry) {
    for (const auto& [key, node] : entry) {
      if (std::ranges::find(entry_keys, key.str()) != entry_keys.end()) continue;
      const std::string nearest = nearest_word(key.str(), entry_keys);
      refuse(node, "there is no key \"" + config_text::printable(key.str()) + "\"" +
                       (nearest.empty() ? "" : "; did you mean " + nearest + "?"));
    }
    principal_entry p;
    p.who.name = read_name(entry, "name");
    p.who.tenant = protocol::tenant_id(read_name(entry, "tenant"));
    read_roles(entry, p.who);
    read_tokens(entry, p);
    read_certificate(entry, p);
    p.who.queues = read_names(entry, "queues");
    p.who.programs = read_names(entry, "programs");
    p.who.max_leases = read_number(entry, "max_leases", 1, 10'000'000, p.who.max_leases);
    p.who.requests_per_second = read_number(entry, "requests_per_second", 0, 1'000'000, 0);
    if (found.find(p.who.name) != nullptr)
      refuse(entry, "the name " + p.who.name + " stands twice");
    found.entries.push_back(std::move(p));
  }

  std::string read_name(const toml::table& entry, std::string_view key) {
    const toml::node* node = entry.get(key);
    const auto* text = node == nullptr ? nullptr : node->as_string();
    if (text != nullptr && is_principal_name(text->get())) return text->get();
    refuse(node == nullptr ? entry : *node,
           std::string(key) + " must be given: " + std::string(name_rule));
    return {};
  }

  std::vector<std::pair<std::string, const toml::node*>> read_texts(const toml::table& entry,
                                                                    std::string_view key) {
    std::vector<std::pair<std::string, const toml::node*>> out;
    const toml::node* node = entry.get(key);
    if (node == nullptr) return out;
    const toml::array* many = node->as_array();
    if (many == nullptr) refuse(*node, std::string(key) + " must be a list of texts");
    if (many == nullptr) return out;
    for (const toml::node& item : *many) {
      const auto* text = item.as_string();
      if (text == nullptr) {
        refuse(item, std::string(key) + " must be a list of texts");
      } else {
        out.emplace_back(text->get(), &item);
      }
    }
    return out;
  }

  std::vector<std::string> read_names(const toml::table& entry, std::string_view key) {
    std::vector<std::string> out;
    for (auto& [text, node] : read_texts(entry, key)) {
      if (text != "*" && !is_principal_name(text)) {
        refuse(*node, std::string(key) + " holds \"" + config_text::printable(text) +
                          "\"; a name is \"*\" or " + std::string(name_rule));
      }
      out.push_back(std::move(text));
    }
    return out;
  }

  void read_roles(const toml::table& entry, actors::principal& who) {
    for (const auto& [text, node] : read_texts(entry, "roles")) {
      const auto known = role_from_word(text);
      if (!known) {
        refuse(*node, "there is no role \"" + config_text::printable(text) +
                          "\"; the roles are worker, client, operator and auditor");
      } else if (!who.has(*known)) {
        who.roles.push_back(*known);
      }
    }
    if (who.roles.empty()) refuse(entry, "roles must name at least one role");
  }

  void read_tokens(const toml::table& entry, principal_entry& p) {
    for (const auto& [text, node] : read_texts(entry, "tokens")) {
      const auto hash = hash_from_hex(text);
      // The text is not repeated: it might be a token that was put here by mistake.
      if (!hash) refuse(*node, "a token is kept as 64 hex digits, the SHA-256 of its text");
      if (hash && !known_tokens_.insert(*hash).second) refuse(*node, "the same token stands twice");
      if (hash) p.tokens.push_back(*hash);
    }
  }

  void read_certificate(const toml::table& entry, principal_entry& p) {
    const toml::node* node = entry.get("certificate");
    if (node == nullptr) return;
    const auto* text = node->as_string();
    if (text == nullptr || !is_certificate_name(text->get())) {
      refuse(*node,
             "certificate must be the name in a client certificate: 1 to 255 bytes without control "
             "characters");
    } else if (!known_certificates_.insert(text->get()).second) {
      refuse(*node, "the same certificate name stands twice");
    } else {
      p.certificate = text->get();
    }
  }

  std::int64_t read_number(const toml::table& entry, std::string_view key, std::int64_t lowest,
                           std::int64_t highest, std::int64_t otherwise) {
    const toml::node* node = entry.get(key);
    if (node == nullptr) return otherwise;
    const auto* number = node->as_integer();
    if (number != nullptr && number->get() >= lowest && number->get() <= highest)
      return number->get();
    refuse(*node, std::string(key) + " must be a whole number from " + std::to_string(lowest) +
                      " to " + std::to_string(highest));
    return otherwise;
  }

  const std::string& name_;
  std::set<token_hash> known_tokens_;
  std::set<std::string> known_certificates_;
};

}  // namespace

// Names become the first half of a holder and must not hold the slash that ends it.
bool is_principal_name(std::string_view text) noexcept {
  return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == ':' || c == '-';
  });
}

std::string_view word(role what) noexcept {
  const auto found = std::ranges::find(roles, what, &std::pair<role, std::string_view>::first);
  return found == roles.end() ? std::string_view{} : found->second;
}

std::optional<role> role_from_word(std::string_view text) noexcept {
  const auto found = std::ranges::find(roles, text, &std::pair<role, std::string_view>::second);
  if (found == roles.end()) return std::nullopt;
  return found->first;
}

const principal_entry* principal_set::find_by_token(std::string_view token) const {
  const token_hash hash = hash_token(token);
  const principal_entry* found = nullptr;
  for (const principal_entry& entry : entries) {
    for (const token_hash& known : entry.tokens) {
      if (equal_in_constant_time(hash, known)) found = &entry;
    }
  }
  return found;
}

const principal_entry* principal_set::find(std::string_view name) const {
  const auto found =
      std::ranges::find_if(entries, [&](const principal_entry& e) { return e.who.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

const principal_entry* principal_set::find_by_certificate(
    const std::vector<std::string>& names) const {
  const principal_entry* found = nullptr;
  for (const principal_entry& entry : entries) {
    if (entry.certificate.empty() || std::ranges::find(names, entry.certificate) == names.end()) {
      continue;
    }
    if (found != nullptr) return nullptr;
    found = &entry;
  }
  return found;
}

bool principal_set::still_holds(const actors::principal& who, const credential_proof& by) const {
  const principal_entry* entry = find(who.name);
  if (entry == nullptr || entry->who.tenant != who.tenant || entry->who.roles != who.roles ||
      entry->who.queues != who.queues || entry->who.programs != who.programs) {
    return false;
  }
  if (!by.certificate.empty() && entry->certificate != by.certificate) return false;
  if (!by.token) return !by.certificate.empty();
  return std::ranges::any_of(entry->tokens, [&](const token_hash& known) {
    return equal_in_constant_time(known, *by.token);
  });
}

std::variant<principal_set, principals_fault> parse_principals(std::string_view content,
                                                               const std::string& name) {
  const auto parsed = parse_toml(content, name);
  if (const auto* sentence = std::get_if<std::string>(&parsed)) return principals_fault{*sentence};
  reader r(name);
  r.read(std::get<toml::table>(parsed));
  if (r.fault) return *r.fault;
  return std::move(r.found);
}

std::variant<principal_set, principals_fault> read_principals(const std::filesystem::path& file) {
  struct stat facts {};
  if (stat(file.c_str(), &facts) != 0) {
    return principals_fault{"The principals file " + file.string() +
                            " cannot be read; leasehold token add makes one."};
  }
  if (!S_ISREG(facts.st_mode)) {
    return principals_fault{"The principals file " + file.string() +
                            " is not a regular file; leasehold token add makes one."};
  }
  auto fault =
      find_access_fault("principals file", file, facts, privacy::reached_by_nobody_else, geteuid());
  if (fault) return principals_fault{std::move(*fault)};
  std::ifstream in(file, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  if (!in) return principals_fault{"The principals file " + file.string() + " cannot be read."};
  return parse_principals(content.str(), file.string());
}

principal_registry::principal_registry(principal_set initial)
    : current_(std::make_shared<const principal_set>(std::move(initial))) {}

std::shared_ptr<const principal_set> principal_registry::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

void principal_registry::replace(principal_set with) {
  auto next = std::make_shared<const principal_set>(std::move(with));
  const std::lock_guard lock(mutex_);
  current_ = std::move(next);
  ++version_;
}

}  // namespace leasehold::server
