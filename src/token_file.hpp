// Writing the principals file: what `leasehold token` does, and what the first start makes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "src/principals.hpp"

namespace leasehold::server {

/// One sentence: what could not be done, where, and the way out.
struct token_fault {
  std::string sentence;
  bool is_in_the_request = false;  ///< the file was not even looked at
};

/// The content of a principals file. Comments of a file that is written again are not kept.
std::string print_principals(const principal_set& all);

/// Replaces the file in one step; afterwards only its owner may read it.
std::optional<token_fault> write_principals(const std::filesystem::path& file,
                                            const principal_set& all);

struct token_request {
  std::string name;
  std::string tenant = "default";
  std::vector<actors::role> roles;
  std::vector<std::string> queues{"*"};
  std::vector<std::string> programs{"*"};
  std::int64_t max_leases = 10'000;
  std::int64_t requests_per_second = 0;
  std::string certificate;  ///< not empty: this name in its client certificate instead of a token
};

struct added_token {
  std::string token;  ///< shown once, only its hash is kept; empty: none was asked for
  std::string name;   ///< of the token: how list and revoke call it
};

/// Gives a principal one token more. A principal that is there keeps its tenant, roles and limits:
/// a request that asks for other roles or another tenant is refused. A missing file is made.
std::variant<added_token, token_fault> add_token(const std::filesystem::path& file,
                                                 const token_request& request);

struct token_line {
  std::string principal;
  std::string tenant;
  std::vector<actors::role> roles;
  std::string token;        ///< its name; empty: the principal has no token
  std::string certificate;  ///< the name in its client certificate; empty: it has none
};
std::variant<std::vector<token_line>, token_fault> list_tokens(const std::filesystem::path& file);

/// Takes away one token by its name, or with an empty one all of the principal and the principal
/// itself, which also goes with its last token unless a client certificate names it. Yields how
/// many tokens there were.
std::variant<std::int64_t, token_fault> revoke_token(const std::filesystem::path& file,
                                                     const std::string& principal,
                                                     const std::string& token);

/// What a first start found or made.
struct first_start {
  bool made_directory = false;
  bool store_is_gone = false;                           ///< principals are there, and no store
  std::optional<std::filesystem::path> operator_token;  ///< the file that it was written to
};

/// Makes what is missing: the data directory (mode 0700), and, unless `principals` is there
/// already, an operator with its token in `operator.token` (both 0600). `own_principals`: the file
/// was named by somebody, who must then have made it. Refuses a directory that another user owns or
/// can write, and one that holds such a file.
std::variant<first_start, token_fault> prepare_directory(const std::filesystem::path& directory,
                                                         const std::filesystem::path& principals,
                                                         bool own_principals);

}  // namespace leasehold::server
