#include "callbacks/core/fetched_checkpoint.h"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <system_error>

#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/file_version.h"
#include "core/glob.h"
#include "remote/remote_address.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

constexpr const char kLink[] = ".symlink";
constexpr int kMostLinks = 8;          // one leads to another
constexpr size_t kLongestName = 4096;  // a longer text is no name

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) {
    text.pop_back();
  }
  return text;
}

/// The content of a small file or object; nothing when there is none.
std::optional<std::string> read_text(const std::string& name, const OpenRemoteStore& open) {
  if (is_remote(name)) {
    const AddressAndName parts = split_address(name);
    return open(parts.folder, {})->read(parts.name);
  }
  const auto files = real_file_system();
  return files->exists(name) ? std::optional(files->read(name)) : std::nullopt;
}

/// Where a link leads. Names stand beside it; with folders in them they begin at the top of the
/// bucket.
std::string target_of(const std::string& link, const std::string& text) {
  if (text.empty() || text.size() > kLongestName || text.find('\0') != std::string::npos) {
    throw CheckpointError(link + ": expected the name of a checkpoint in a link");
  }
  if (is_remote(text)) {
    return text;
  }
  if (!is_remote(link)) {
    return (fs::path(link).parent_path() / text).string();
  }
  const RemoteAddress address = parse_remote_address(link);
  const std::string top = fmt::format("{}://{}/", address.scheme, address.authority);
  return (text.find('/') == std::string::npos ? split_address(link).folder : top) + text;
}

/// Hands a name, and those that its links lead to, to `take` until it takes one.
/// \throws CheckpointError  when it takes none
void follow_links(std::string name,
                  const OpenRemoteStore& open,
                  const std::function<bool(const std::string&)>& take) {
  const std::string named = name;
  for (int links = 0; links < kMostLinks; ++links) {
    const bool is_link = ends_with(name, kLink);
    if (!is_link && take(name)) {
      return;
    }
    const std::string link = is_link ? name : name + kLink;
    const std::optional<std::string> text = read_text(link, open);
    if (!text) {
      throw CheckpointError(name + ": there is no such file");
    }
    name = target_of(link, trimmed(*text));
  }
  throw CheckpointError(named + ": links lead to each other");
}

std::string version_at(const std::string& name, const OpenRemoteStore& open) {
  if (!is_remote(name)) {
    return version_of_file(name);
  }
  const AddressAndName parts = split_address(name);
  return open(parts.folder, {})->version(parts.name);
}

}  // namespace

FetchedCheckpoint::FetchedCheckpoint(const fs::path& named,
                                     const fs::path& scratch,
                                     const OpenRemoteStore& open) {
  follow_links(
      named.string(), open, [&](const std::string& name) { return fetch(name, scratch, open); });
}

bool FetchedCheckpoint::fetch(const std::string& name,
                              const fs::path& scratch,
                              const OpenRemoteStore& open) {
  if (!is_remote(name)) {
    file_ = name;
    return real_file_system()->exists(name);
  }
  const AddressAndName parts = split_address(name);
  file_ = temporary_name(scratch / "download");
  is_download_ = open(parts.folder, {})->download(parts.name, file_);
  return is_download_;
}

FetchedCheckpoint::~FetchedCheckpoint() {
  if (is_download_) {
    std::error_code ignored;
    fs::remove(file_, ignored);
  }
}

std::string version_of_checkpoint(const fs::path& named, const OpenRemoteStore& open) {
  std::string version;
  try {
    follow_links(named.string(), open, [&](const std::string& name) {
      version = version_at(name, open);
      return !version.empty();
    });
  } catch (const Error&) {
    version.clear();
  }
  return version;
}

StateDict read_named_checkpoint(const fs::path& named,
                                const fs::path& scratch,
                                const OpenRemoteStore& open) {
  const FetchedCheckpoint fetched(named, scratch, open);
  return read_checkpoint(fetched.file());
}

std::vector<std::string> matching_addresses(const std::string& glob, const OpenRemoteStore& open) {
  const AddressAndName pattern = split_address(glob);
  const std::string scheme = parse_remote_address(glob).scheme;
  const bool has_query = scheme == "http" || scheme == "https";
  const std::string without_query =
      has_query ? pattern.name.substr(0, pattern.name.find('?')) : pattern.name;
  if (without_query.find_first_of("*?") == std::string::npos) {
    return {glob};
  }
  std::vector<std::string> found;
  for (const std::string& name : open(pattern.folder, {})->list()) {
    if (name.find('/') == std::string::npos && glob_match(pattern.name, name)) {
      found.push_back(pattern.folder + name);
    }
  }
  return found;
}

}  // namespace rondo
