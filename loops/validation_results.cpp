#include "loops/validation_results.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <sstream>

#include "callbacks/core/fetched_checkpoint.h"
#include "core/csv.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/json.h"
#include "core/json_reader.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

/// A short name for a long text. Source: Fowler, Noll, Vo: FNV-1a, 64 bits.
std::string digest(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return fmt::format("{:016x}", hash);
}

/// Appends a line and hands it to the system: it outlives this process, not a loss of power.
void append_line(const fs::path& path, const std::string& line) {
  std::ofstream file(path, std::ios::app);
  if (!(file << line << std::endl)) {
    throw IoError(fmt::format("cannot append to {}", path.string()), errno);
  }
}

std::string line_of(const ValidationRow& row, const std::string& key) {
  return fmt::format("{{\"checkpoint\": {}, \"step\": {}, \"found_with\": {}{}{}}}",
                     json_string(row.checkpoint ? row.checkpoint->string() : ""),
                     row.step,
                     json_string(key),
                     row.metrics.empty() ? "" : ", ",
                     json_members(row.metrics));
}

std::vector<std::string> names_of(const ValidationRow& row) {
  std::vector<std::string> names;
  for (const Metrics::Item& item : row.metrics.items()) {
    names.push_back(item.first);
  }
  return names;
}

}  // namespace

ValidationResults::ValidationResults(fs::path directory,
                                     const std::vector<std::string>& loaders,
                                     const std::string& config,
                                     OpenRemoteStore open)
    : directory_(std::move(directory)),
      loaders_(fmt::format("{}", fmt::join(loaders, ","))),
      config_(config.empty() ? "" : digest(config)),
      open_(std::move(open)) {
  read();
  if (!entries_.empty()) {
    write_csv();  // a crash may have cut it short
  }
}

void ValidationResults::read() {
  std::ifstream file(directory_ / "validate_all.jsonl");
  for (std::string line; std::getline(file, line);) {
    Entry entry;
    std::string checkpoint;
    try {
      JsonReader json(line);
      json.object([&](const std::string& key) {
        if (key == "checkpoint") {
          checkpoint = json.string();
        } else if (key == "found_with") {
          entry.key = json.string();
        } else if (key == "step") {
          entry.row.step = json.integer();
        } else {
          entry.row.metrics.set(key,
                                json.number().value_or(std::numeric_limits<double>::quiet_NaN()));
        }
      });
      json.end();
    } catch (const DataError&) {
      continue;
    }
    entry.row.checkpoint = checkpoint;
    entries_[checkpoint] = std::move(entry);
  }
}

std::string ValidationResults::key_of(const fs::path& checkpoint) const {
  const std::string version = version_of_checkpoint(checkpoint, open_);
  return version.empty() ? ""
                         : fmt::format("{}, loaders {}, config {}", version, loaders_, config_);
}

std::optional<ValidationRow> ValidationResults::find(const fs::path& checkpoint) const {
  const auto found = entries_.find(checkpoint.string());
  const bool is_known = !config_.empty() && found != entries_.end() && !found->second.key.empty() &&
                        found->second.key == key_of(checkpoint);
  return is_known ? std::optional<ValidationRow>(found->second.row) : std::nullopt;
}

void ValidationResults::add(const ValidationRow& row, const std::string& key) {
  const fs::path checkpoint = row.checkpoint.value_or(fs::path());
  Entry entry{key, row};
  const fs::path lines = directory_ / "validate_all.jsonl";
  std::string line = line_of(row, entry.key);
  std::ifstream before(lines, std::ios::ate);
  if (before && before.tellg() > 0) {
    before.seekg(-1, std::ios::end);
    if (before.get() != '\n') {
      line.insert(line.begin(), '\n');  // a crash cut the line before short
    }
  }
  append_line(lines, line);
  const bool is_new = entries_.insert_or_assign(checkpoint.string(), std::move(entry)).second;
  if (is_new && columns_ == names_of(row)) {
    append_to_csv(row);
  } else {
    write_csv();
  }
}

fs::path ValidationResults::csv() const {
  return directory_ / "validate_all.csv";
}

void ValidationResults::append_to_csv(const ValidationRow& row) const {
  ValidationTable one;
  one.rows.push_back(row);
  const std::string text = one.to_csv();
  const size_t header = text.find('\n');
  append_line(csv(), text.substr(header + 1, text.size() - header - 2));
}

void ValidationResults::write_csv() {
  ValidationTable all;
  for (const auto& entry : entries_) {
    all.rows.push_back(entry.second.row);
  }
  std::stable_sort(all.rows.begin(), all.rows.end(), [](const auto& a, const auto& b) {
    return a.step < b.step;
  });
  FileSystem& files = *real_file_system();
  const std::string text = all.to_csv();
  if (!files.exists(csv()) || files.read(csv()) != text) {
    write_atomically(files, csv(), text);
  }
  const std::vector<std::string> names = names_of(all.rows.front());
  const bool is_uniform =
      std::all_of(all.rows.begin(), all.rows.end(), [&](const ValidationRow& other) {
        return names_of(other) == names;
      });
  columns_ = is_uniform ? names : std::vector<std::string>{};
}

}  // namespace rondo
