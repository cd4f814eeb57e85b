#include "src/config_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include "src/toml_text.hpp"

namespace leasehold::server {
namespace {

constexpr std::size_t most_config_bytes = std::size_t{1} << 20;

class reader {
 public:
  explicit reader(const std::string& name) : name_(name) {}

  void read(const toml::table& root) {
    for (const auto& [key, node] : root) {
      if (key == "queues" && node.is_table()) {
        read_queues(*node.as_table());
      } else {
        read_node(std::string(key.str()), "", node);
      }
    }
  }

  std::vector<setting> found;
  std::optional<config_fault> fault;

 private:
  std::string place(const toml::node& node) const { return place_of(name_, node.source()); }

  void read_queues(const toml::table& queues) {
    for (const auto& [queue, node] : queues) {
      const toml::table* keys = node.as_table();
      if (keys == nullptr) {
        refuse(node, "queues." + std::string(queue.str()) +
                         " must be a table such as [queues.NAME] with max_live and policy");
        continue;
      }
      for (const auto& [key, value] : *keys) {
        const std::string name(key.str());
        read_node(name == "policy" ? name : "queues." + name, std::string(queue.str()), value);
      }
    }
  }

  void read_node(const std::string& name, const std::string& queue, const toml::node& node) {
    if (const toml::table* inner = node.as_table()) {
      for (const auto& [key, value] : *inner) {
        read_node(name + "." + std::string(key.str()), queue, value);
      }
    } else if (auto value = read_value(node)) {
      found.push_back({name, queue, std::move(*value), place(node)});
    } else {
      refuse(node, name + " must be a text, a whole number, true or false, or a list of texts");
    }
  }

  static std::optional<raw_value> read_value(const toml::node& node) {
    if (const auto* s = node.as_string()) return raw_value{s->get()};
    if (const auto* n = node.as_integer()) return raw_value{n->get()};
    if (const auto* b = node.as_boolean()) return raw_value{b->get()};
    const toml::array* many = node.as_array();
    if (many == nullptr) return std::nullopt;
    std::vector<std::string> texts;
    for (const toml::node& item : *many) {
      const auto* s = item.as_string();
      if (s == nullptr) return std::nullopt;
      texts.push_back(s->get());
    }
    return raw_value{std::move(texts)};
  }

  void refuse(const toml::node& node, const std::string& what) {
    if (!fault) fault = config_fault{place(node) + ": " + what + "."};
  }

  const std::string& name_;
};

}  // namespace

std::variant<std::vector<setting>, config_fault> parse_config(std::string_view content,
                                                              const std::string& name) {
  const auto parsed = parse_toml(content, name);
  if (const auto* sentence = std::get_if<std::string>(&parsed)) return config_fault{*sentence};
  reader r(name);
  r.read(std::get<toml::table>(parsed));
  if (r.fault) return *r.fault;
  return std::move(r.found);
}

namespace {

/// Nothing of what is empty, no regular file, or too large.
std::optional<std::string> content_of(int descriptor) {
  struct stat what {};
  if (descriptor < 0 || ::fstat(descriptor, &what) != 0 || !S_ISREG(what.st_mode)) return {};
  std::string content(most_config_bytes + 1, '\0');
  std::size_t size = 0;
  while (size < content.size()) {
    const ssize_t got = ::read(descriptor, content.data() + size, content.size() - size);
    if (got < 0) return {};
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size == 0 || size > most_config_bytes) return {};
  content.resize(size);
  return content;
}

}  // namespace

std::variant<std::vector<setting>, config_fault> read_config_file(const std::string& path) {
  // Of a pipe the other end would be waited for, at a reload, too.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const auto content = content_of(descriptor);
  if (descriptor >= 0) ::close(descriptor);
  if (!content) {
    return config_fault{"The configuration file " + path +
                        " cannot be read; check that it is a regular file of at most 1 MiB, is not "
                        "empty and may be read."};
  }
  return parse_config(*content, path);
}

}  // namespace leasehold::server
