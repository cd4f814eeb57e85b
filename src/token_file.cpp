#include "src/token_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "src/certificate_names.hpp"
#include "src/config_text.hpp"
#include "src/file_access.hpp"
#include "src/store/schema.hpp"

namespace leasehold::server {
namespace {

token_fault os_fault(const std::string& what, const std::filesystem::path& where) {
  return {what + " " + where.string() + ": " + std::generic_category().message(errno) + "."};
}

/// Writes a file that only its owner may read, and makes it durable.
std::optional<token_fault> write_private(const std::filesystem::path& file,
                                         std::string_view content) {
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return os_fault("Cannot write", file);
  bool good = fchmod(fd, 0600) == 0;
  while (good && !content.empty()) {
    const ssize_t written = write(fd, content.data(), content.size());
    good = written > 0;
    if (good) content.remove_prefix(static_cast<std::size_t>(written));
  }
  good = good && fsync(fd) == 0;
  const int failed = errno;
  close(fd);
  errno = failed;
  if (!good) return os_fault("Cannot write", file);
  return std::nullopt;
}

void sync_directory(const std::filesystem::path& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

std::vector<std::string> role_words(const std::vector<actors::role>& roles) {
  std::vector<std::string> out;
  out.reserve(roles.size());
  for (const actors::role r : roles) out.emplace_back(word(r));
  return out;
}

std::variant<principal_set, token_fault> read_or_empty(const std::filesystem::path& file) {
  std::error_code failed;
  if (!std::filesystem::exists(file, failed)) return principal_set{};
  auto read = read_principals(file);
  if (auto* fault = std::get_if<principals_fault>(&read)) return token_fault{fault->sentence};
  return std::move(std::get<principal_set>(read));
}

std::optional<token_fault> find_difference(const principal_entry& there,
                                           const token_request& asked) {
  auto have = there.who.roles;
  auto want = asked.roles;
  std::ranges::sort(have);
  std::ranges::sort(want);
  if (there.who.tenant.value == asked.tenant && (want.empty() || have == want)) return std::nullopt;
  return token_fault{"The principal " + asked.name +
                     " is there with another tenant or other roles; choose another name, or revoke "
                     "it first."};
}

/// Before the file is touched: a name that breaks the rules would be found in a line of the file
/// that nobody has written yet.
std::optional<token_fault> find_name_fault(const token_request& asked) {
  const auto fault = [](std::string_view what, const std::string& text) {
    return token_fault{"The " + std::string(what) + " \"" + config_text::printable(text) +
                           "\" cannot be one: a name has " + std::string(name_rule) + ".",
                       true};
  };
  if (!is_principal_name(asked.name)) return fault("principal", asked.name);
  if (!is_principal_name(asked.tenant)) return fault("tenant", asked.tenant);
  if (!asked.certificate.empty() && !is_certificate_name(asked.certificate)) {
    return token_fault{"The certificate name \"" + config_text::printable(asked.certificate) +
                           "\" cannot be one: it has 1 to 255 bytes without control characters.",
                       true};
  }
  for (const std::string& queue : asked.queues) {
    if (queue != "*" && !is_principal_name(queue)) return fault("queue", queue);
  }
  for (const std::string& program : asked.programs) {
    if (program != "*" && !is_principal_name(program)) return fault("program", program);
  }
  return std::nullopt;
}

/// Keeps others of our programs from changing the same principals file between reading and
/// replacing.
class file_turn {
 public:
  explicit file_turn(const std::filesystem::path& file)
      : descriptor_(open((file.string() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    while (descriptor_ >= 0 && flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~file_turn() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  file_turn(const file_turn&) = delete;
  file_turn& operator=(const file_turn&) = delete;

 private:
  int descriptor_;
};

principal_entry make_entry(const token_request& request) {
  principal_entry e;
  e.who.name = request.name;
  e.who.tenant = protocol::tenant_id(request.tenant);
  e.who.roles = request.roles;
  e.who.queues = request.queues;
  e.who.programs = request.programs;
  e.who.max_leases = request.max_leases;
  e.who.requests_per_second = request.requests_per_second;
  return e;
}

/// Who can write into the directory can put another store or principals file there, and who can
/// write a file in it can change what was decided. The principals file has a rule of its own, which
/// its reader knows.
std::optional<token_fault> find_foreign_hands(const std::filesystem::path& directory,
                                              const std::filesystem::path& principals) {
  struct stat found {};
  const uid_t self = geteuid();
  if (stat(directory.c_str(), &found) != 0)
    return os_fault("Cannot look at the data directory", directory);
  auto fault =
      find_access_fault("data directory", directory, found, privacy::written_by_nobody_else, self);
  std::error_code failed;
  for (std::filesystem::directory_iterator each(directory, failed), end; !failed && each != end;
       each.increment(failed)) {
    // A file that has just gone is nobody's.
    if (fault || each->path() == principals) continue;
    if (stat(each->path().c_str(), &found) != 0 || !S_ISREG(found.st_mode)) continue;
    fault = find_access_fault("file", each->path(), found, privacy::written_by_nobody_else, self);
  }
  if (fault) return token_fault{std::move(*fault)};
  if (failed) {
    return token_fault{"Cannot look into the data directory " + directory.string() + ": " +
                       failed.message() + "."};
  }
  return std::nullopt;
}

}  // namespace

std::string print_principals(const principal_set& all) {
  std::string out =
      "# Who may speak to leaseholdd. `leasehold token` writes this file anew; comments are not "
      "kept.\n"
      "# Tokens are kept as SHA-256 in hex. leaseholdd reads the file again at SIGHUP.\n";
  for (const principal_entry& e : all.entries) {
    std::vector<std::string> tokens;
    for (const token_hash& hash : e.tokens) tokens.push_back(to_hex(hash));
    out += "\n[[principal]]\nname = " + config_text::toml_string(e.who.name) +
           "\ntenant = " + config_text::toml_string(e.who.tenant.value) +
           "\nroles = " + config_text::toml_list(role_words(e.who.roles)) +
           "\nqueues = " + config_text::toml_list(e.who.queues) +
           "\nprograms = " + config_text::toml_list(e.who.programs) +
           "\nmax_leases = " + std::to_string(e.who.max_leases) +
           "\nrequests_per_second = " + std::to_string(e.who.requests_per_second) +
           "\ntokens = " + config_text::toml_list(tokens) + "\n";
    if (!e.certificate.empty()) {
      out += "certificate = " + config_text::toml_string(e.certificate) + "\n";
    }
  }
  return out;
}

std::optional<token_fault> write_principals(const std::filesystem::path& file,
                                            const principal_set& all) {
  const std::string content = print_principals(all);
  // What cannot be read again is not written: a name from the command line may break the rules.
  auto check = parse_principals(content, file.string());
  if (auto* fault = std::get_if<principals_fault>(&check)) return token_fault{fault->sentence};
  const std::filesystem::path next = file.string() + ".new";
  if (auto fault = write_private(next, content)) {
    unlink(next.c_str());
    return fault;
  }
  if (rename(next.c_str(), file.c_str()) != 0) return os_fault("Cannot replace", file);
  sync_directory(file.parent_path().empty() ? "." : file.parent_path());
  return std::nullopt;
}

std::variant<added_token, token_fault> add_token(const std::filesystem::path& file,
                                                 const token_request& request) {
  if (auto fault = find_name_fault(request)) return *fault;
  const file_turn turn(file);
  auto read = read_or_empty(file);
  if (auto* fault = std::get_if<token_fault>(&read)) return *fault;
  auto& all = std::get<principal_set>(read);
  auto entry = std::ranges::find_if(
      all.entries, [&](const principal_entry& e) { return e.who.name == request.name; });
  if (entry == all.entries.end()) {
    entry = all.entries.insert(all.entries.end(), make_entry(request));
  } else if (auto fault = find_difference(*entry, request)) {
    return *fault;
  }
  if (!request.certificate.empty()) {
    entry->certificate = request.certificate;
    if (auto fault = write_principals(file, all)) return *fault;
    return added_token{};
  }
  const auto token = make_token();
  if (!token) return token_fault{"The machine gives no random bytes; no token was made."};
  const token_hash hash = hash_token(*token);
  entry->tokens.push_back(hash);
  if (auto fault = write_principals(file, all)) return *fault;
  return added_token{*token, token_name(hash)};
}

std::variant<std::vector<token_line>, token_fault> list_tokens(const std::filesystem::path& file) {
  auto read = read_principals(file);
  if (auto* fault = std::get_if<principals_fault>(&read)) return token_fault{fault->sentence};
  std::vector<token_line> out;
  for (const principal_entry& e : std::get<principal_set>(read).entries) {
    const token_line line{e.who.name, e.who.tenant.value, e.who.roles, "", e.certificate};
    if (e.tokens.empty()) out.push_back(line);
    for (const token_hash& hash : e.tokens) {
      out.push_back(line);
      out.back().token = token_name(hash);
    }
  }
  return out;
}

std::variant<std::int64_t, token_fault> revoke_token(const std::filesystem::path& file,
                                                     const std::string& principal,
                                                     const std::string& token) {
  const file_turn turn(file);
  auto read = read_principals(file);
  if (auto* fault = std::get_if<principals_fault>(&read)) return token_fault{fault->sentence};
  auto& all = std::get<principal_set>(read);
  const auto entry = std::ranges::find_if(
      all.entries, [&](const principal_entry& e) { return e.who.name == principal; });
  if (entry == all.entries.end()) {
    return token_fault{"There is no principal " + config_text::printable(principal) +
                       "; leasehold token list shows all."};
  }
  const auto gone = std::erase_if(
      entry->tokens, [&](const token_hash& h) { return token.empty() || token_name(h) == token; });
  if (gone == 0 && !token.empty()) {
    return token_fault{"The principal " + principal + " has no token " +
                       config_text::printable(token) + "; leasehold token list shows all."};
  }
  const bool known_otherwise = !token.empty() && !entry->certificate.empty();
  if (entry->tokens.empty() && !known_otherwise) all.entries.erase(entry);
  if (auto fault = write_principals(file, all)) return *fault;
  return static_cast<std::int64_t>(gone);
}

std::variant<first_start, token_fault> prepare_directory(const std::filesystem::path& directory,
                                                         const std::filesystem::path& principals,
                                                         bool own_principals) {
  first_start out;
  std::error_code failed;
  if (!std::filesystem::exists(directory, failed)) {
    std::filesystem::create_directories(directory.parent_path(), failed);
    if (mkdir(directory.c_str(), 0700) != 0)
      return os_fault("Cannot make the data directory", directory);
    out.made_directory = true;
  }
  if (!std::filesystem::is_directory(directory, failed)) {
    return token_fault{"The data directory " + directory.string() + " is not a directory."};
  }
  if (auto fault = find_foreign_hands(directory, principals)) return *fault;
  out.store_is_gone = std::filesystem::exists(directory / "principals.toml", failed) &&
                      !std::filesystem::exists(directory / storage::database_name, failed);
  if (own_principals || std::filesystem::exists(principals, failed)) return out;

  const std::filesystem::path token_path = directory / "operator.token";
  auto added = add_token(
      principals, {.name = "operator", .roles = {actors::role::operator_, actors::role::client}});
  if (auto* fault = std::get_if<token_fault>(&added)) return *fault;
  if (auto fault = write_private(token_path, std::get<added_token>(added).token + "\n"))
    return *fault;
  out.operator_token = token_path;
  return out;
}

}  // namespace leasehold::server
