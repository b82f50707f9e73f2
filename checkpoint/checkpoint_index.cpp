#include "checkpoint/checkpoint_index.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>

#include "checkpoint/internal/file_lock.h"
#include "checkpoint/internal/malformed.h"
#include "core/error.h"
#include "core/utf8.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

constexpr const char kCheckpoints[] = "checkpoints";
constexpr const char kAnnounced[] = "announced";

/// A basic string of TOML.
std::string toml_string(const std::string& text) {
  if (!is_utf8(text)) {
    throw CheckpointError(
        fmt::format("the path {} is not UTF-8, which an index requires", detail::in_quotes(text)));
  }
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') {
      quoted += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

std::string list_text(const char* key, const std::vector<std::string>& entries) {
  std::string text = fmt::format("{} = [\n", key);
  for (const std::string& entry : entries) {
    text += fmt::format("  {},\n", toml_string(entry));
  }
  return text + "]\n";
}

[[noreturn]] void fail(const fs::path& file,
                       const toml::source_position& at,
                       std::string_view what) {
  throw CheckpointError(
      fmt::format("{}:{}:{}: {}; if you delete this file, rondo finds the checkpoints next to it "
                  "by their names",
                  file.string(),
                  at.line,
                  at.column,
                  what));
}

toml::table parse_index(const fs::path& file, const std::string& text) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail(file, error.source().begin, error.description());
  }
}

std::vector<std::string> entries_of(const fs::path& file,
                                    const toml::table& table,
                                    const char* key) {
  const toml::array* array = table[key].as_array();
  if (array == nullptr) {
    fail(file, table.source().begin, fmt::format("expected {} = [<paths>]", key));
  }
  std::vector<std::string> entries;
  for (const toml::node& node : *array) {
    const auto entry = node.value_exact<std::string>();
    if (!entry || entry->empty()) {
      fail(file, node.source().begin, "expected a path as a string");
    }
    entries.push_back(*entry);
  }
  return entries;
}

void add_once(const std::string& entry, std::vector<std::string>& entries) {
  if (std::find(entries.begin(), entries.end(), entry) == entries.end()) {
    entries.push_back(entry);
  }
}

/// \return true when it was there
bool erase(const std::string& entry, std::vector<std::string>& entries) {
  const auto kept = std::remove(entries.begin(), entries.end(), entry);
  const bool was_there = kept != entries.end();
  entries.erase(kept, entries.end());
  return was_there;
}

}  // namespace

CheckpointIndex::CheckpointIndex(std::shared_ptr<FileSystem> files,
                                 fs::path model_dir,
                                 CheckpointName name,
                                 fs::path checkpoint_root)
    : files_(std::move(files)),
      model_dir_(std::move(model_dir)),
      name_(std::move(name)),
      root_(checkpoint_root.empty() ? model_dir_ : std::move(checkpoint_root)) {}

std::vector<fs::path> CheckpointIndex::listed() const {
  std::vector<fs::path> paths;
  for (const std::string& entry : read().checkpoints) {
    paths.push_back(path_of(entry));
  }
  return paths;
}

std::vector<fs::path> CheckpointIndex::all() const {
  std::vector<std::pair<CheckpointStep, fs::path>> known;
  for (fs::path& path : listed()) {
    if (const auto step = name_.match(path.filename().string())) {
      known.emplace_back(*step, std::move(path));
    }
  }
  std::stable_sort(
      known.begin(), known.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<fs::path> paths;
  for (auto& [step, path] : known) {
    paths.push_back(std::move(path));
  }
  return paths;
}

std::vector<fs::path> CheckpointIndex::resumable() const {
  std::vector<fs::path> paths = listed();
  const auto is_named = [this](const fs::path& path) {
    return name_.match(path.filename().string()).has_value();
  };
  paths.erase(std::remove_if(paths.begin(), paths.end(), is_named), paths.end());
  for (fs::path& path : all()) {
    paths.push_back(std::move(path));
  }
  return paths;
}

std::optional<fs::path> CheckpointIndex::newest() const {
  const std::vector<fs::path> paths = resumable();
  return paths.empty() ? std::nullopt : std::optional(paths.back());
}

bool CheckpointIndex::lists(const fs::path& checkpoint) const {
  const std::vector<fs::path> paths = listed();
  return std::any_of(paths.begin(), paths.end(), [&](const fs::path& path) {
    return is_same_path(path, checkpoint);
  });
}

void CheckpointIndex::announce(const fs::path& checkpoint) {
  update([entry = entry_of(checkpoint)](Content& content) { content.announced.push_back(entry); });
}

void CheckpointIndex::append(const fs::path& checkpoint) {
  update([entry = entry_of(checkpoint)](Content& content) {
    add_once(entry, content.checkpoints);
    erase(entry, content.announced);
  });
}

bool CheckpointIndex::remove(const fs::path& checkpoint) {
  bool was_listed = false;
  update([&was_listed, entry = entry_of(checkpoint)](Content& content) {
    was_listed = erase(entry, content.checkpoints);
  });
  return was_listed;
}

std::vector<fs::path> CheckpointIndex::drop_vanished() {
  std::vector<fs::path> dropped;
  update([&](Content& content) {
    content.announced.clear();  // by processes that died before the file was there
    Entries kept;
    std::vector<fs::path> vanished;
    for (const std::string& entry : content.checkpoints) {
      const fs::path path = path_of(entry);
      if (!files_->exists(path)) {
        vanished.push_back(path);
        continue;
      }
      add_once(path == model_dir_ / entry ? entry : entry_of(path), kept);
    }
    if (!kept.empty()) {
      content.checkpoints = std::move(kept);
      dropped = std::move(vanished);
    }
  });
  return dropped;
}

template <class Change>
void CheckpointIndex::update(const Change& change) {
  const detail::FileLock lock(file().string() + ".lock");
  const std::string before = files_->exists(file()) ? files_->read(file()) : "";
  Content content = read();
  change(content);
  if (before.empty() && content.checkpoints.empty() && content.announced.empty()) {
    return;
  }
  std::string after = list_text(kCheckpoints, content.checkpoints);
  if (!content.announced.empty()) {
    after += list_text(kAnnounced, content.announced);
  }
  if (after != before) {
    write_atomically(*files_, file(), after);
  }
}

CheckpointIndex::Content CheckpointIndex::read() const {
  if (!files_->exists(file())) {
    return {adopt(), {}};
  }
  const toml::table table = parse_index(file(), files_->read(file()));
  Content content{entries_of(file(), table, kCheckpoints), {}};
  if (!table.contains(kAnnounced)) {
    return content;
  }
  for (const std::string& entry : entries_of(file(), table, kAnnounced)) {
    if (files_->exists(path_of(entry))) {
      add_once(entry, content.checkpoints);
    } else {
      content.announced.push_back(entry);
    }
  }
  return content;
}

CheckpointIndex::Entries CheckpointIndex::adopt() const {
  if (fs::path(entry_of(root_)).is_absolute()) {
    return {};  // other runs may save there too
  }
  std::vector<std::pair<CheckpointStep, std::string>> found;
  for (const std::string& name : files_->list(root_)) {
    if (const auto step = name_.match(name)) {
      found.emplace_back(*step, entry_of(root_ / name));
    }
  }
  std::sort(found.begin(), found.end());
  Entries entries;
  for (auto& [step, entry] : found) {
    entries.push_back(std::move(entry));
  }
  return entries;
}

fs::path CheckpointIndex::path_of(const std::string& entry) const {
  fs::path path = model_dir_ / entry;
  if (fs::path(entry).is_relative() || files_->exists(path)) {
    return path;
  }
  fs::path moved = root_ / path.filename();
  return files_->exists(moved) ? moved : path;
}

std::string CheckpointIndex::entry_of(const fs::path& checkpoint) const {
  const fs::path path = fs::absolute(checkpoint).lexically_normal();
  const fs::path relative = path.lexically_relative(fs::absolute(model_dir_).lexically_normal());
  const bool is_inside = !relative.empty() && *relative.begin() != "..";
  return (is_inside ? relative : path).string();
}

std::string index_text(const std::vector<std::string>& checkpoints) {
  return list_text(kCheckpoints, checkpoints);
}

std::vector<std::string> checkpoints_in_index(const fs::path& file, const std::string& text) {
  return entries_of(file, parse_index(file, text), kCheckpoints);
}

bool is_same_path(const fs::path& a, const fs::path& b) {
  return fs::absolute(a).lexically_normal() == fs::absolute(b).lexically_normal();
}

}  // namespace rondo
