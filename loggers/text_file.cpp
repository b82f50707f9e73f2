#include "loggers/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/file_system.h"
#include "core/no_sigpipe.h"
#include "core/writable_path.h"

namespace rondo {

namespace fs = std::filesystem;

namespace {

constexpr size_t kWriteAt = 8192;    // bytes that are gathered before the thread gets them
constexpr size_t kKeepUpTo = 65536;  // bytes that wait while nothing can be written

bool is_regular(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

void require_done(const std::error_code& error, const fs::path& path) {
  if (error) {
    throw IoError(fmt::format("cannot rewrite {}", path.string()), error.value());
  }
}

/// The file itself where the path is a link to it.
fs::path file_of(const fs::path& path) {
  std::error_code error;
  fs::path file = fs::canonical(path, error);
  require_done(error, path);
  return file;
}

/// Calls `visit` for each line, without its newline; `is_whole` is false for a last one that has
/// none.
void for_each_line(const fs::path& path,
                   const std::function<void(const std::string& line, bool is_whole)>& visit) {
  std::ifstream file(path, std::ios::binary);
  for (std::string line; std::getline(file, line);) {
    visit(line, !file.eof());
  }
  if (file.bad()) {
    throw IoError(fmt::format("cannot read {}", path.string()), errno);
  }
}

/// `metrics.1.jsonl`, or the first number that is free.
fs::path free_path_beside(const fs::path& path) {
  for (int number = 1;; ++number) {
    fs::path candidate = path;
    candidate.replace_filename(
        fmt::format("{}.{}{}", path.stem().string(), number, path.extension().string()));
    if (!real_file_system()->exists(candidate)) {
      return candidate;
    }
  }
}

}  // namespace

TextFile::~TextFile() {
  writer_.wait();
  take(gathered_);
  write_pending();
}

void TextFile::set_path(fs::path path, const TextLog& log) {
  require_writable_file(path);
  path_ = std::move(path);
  writer_.warn_of_waits(log, path_.string());
}

bool TextFile::is_empty() {
  if (!gathered_.empty()) {
    return false;
  }
  writer_.wait();
  std::error_code missing;
  return pending_.empty() && (fs::file_size(path_, missing) == 0 || missing);
}

void TextFile::append(std::string_view line) {
  gathered_ += line;
  gathered_ += '\n';
  if (gathered_.size() >= kWriteAt) {
    hand_over();
  }
}

void TextFile::append_later(size_t bytes, std::function<std::string()> make) {
  hand_over();
  writer_.push(bytes, [this, make = std::move(make)] {
    take(make() + '\n');
    tell(write_pending());
  });
}

void TextFile::start_flush() {
  hand_over();
  check();
}

void TextFile::hand_over() {
  if (gathered_.empty()) {
    return;
  }
  const size_t bytes = gathered_.size();
  writer_.push(bytes, [this, lines = std::exchange(gathered_, {})] {
    take(lines);
    tell(write_pending());
  });
}

// A disk that hangs must not hold up a save for good.
void TextFile::flush() {
  constexpr std::chrono::seconds kLongest(60);
  hand_over();
  if (!writer_.wait_at_most(kLongest)) {
    throw IoError(fmt::format("{} has taken nothing for {} s: the run continues without it",
                              path_.string(),
                              kLongest.count()),
                  ETIMEDOUT);
  }
  check();
  tell(write_pending());
}

/// \return what went wrong, 0 for nothing
int TextFile::open() {
  std::error_code error;
  if (path_.has_parent_path()) {
    fs::create_directories(path_.parent_path(), error);
  }
  do {
    file_ = detail::FileDescriptor(
        ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  } while (file_.get() < 0 && errno == EINTR);  // of a pipe that nobody reads
  if (file_.get() < 0) {
    return errno;
  }
  if (!is_regular(path_)) {
    return 0;
  }
  std::ifstream before(path_, std::ios::binary | std::ios::ate);
  const auto size = static_cast<int64_t>(before.tellg());
  if (!size_at_open_) {
    size_at_open_ = static_cast<size_t>(size);
  }
  if (size > 0 && before.seekg(-1, std::ios::end).get() != '\n') {
    pending_.insert(0, "\n");
  }
  return 0;
}

void TextFile::take(std::string_view lines) {
  if (pending_.size() + lines.size() < kKeepUpTo || pending_.empty()) {
    pending_ += lines;
  } else {
    lost_ += std::count(lines.begin(), lines.end(), '\n');
  }
}

int64_t TextFile::lost() {
  hand_over();
  writer_.wait();
  const bool may_come = !is_failing_;
  return lost_ + (may_come ? 0 : std::count(pending_.begin(), pending_.end(), '\n'));
}

/// Writes as much as can be written. \return what went wrong, 0 for nothing
int TextFile::write_pending() {
  const NoSigpipe no_signal;
  while (!pending_.empty()) {
    if (file_.get() < 0) {
      if (const int error = open(); error != 0) {
        return error;
      }
    }
    const ssize_t written = ::write(file_.get(), pending_.data(), pending_.size());
    if (written < 0 && errno != EINTR) {
      return errno;
    }
    pending_.erase(0, written < 0 ? 0 : static_cast<size_t>(written));
  }
  return 0;
}

void TextFile::tell(int error) {
  const bool was_failing = std::exchange(is_failing_, error != 0);
  if (error != 0 && !was_failing) {
    throw IoError(fmt::format("cannot write {}", path_.string()), error);
  }
}

/// With everything written. A pipe is none, and not waited for.
bool TextFile::has_file_to_change() {
  std::error_code error;
  if (fs::is_other(path_, error)) {
    return false;
  }
  flush();
  return is_regular(path_);
}

void TextFile::keep_lines(const std::function<bool(std::string_view line)>& is_kept) {
  if (!has_file_to_change()) {
    return;
  }
  std::vector<bool> kept;
  bool drops = false;
  for_each_line(path_, [&](const std::string& line, bool is_whole) {
    kept.push_back(is_whole && is_kept(line));
    drops = drops || !kept.back();
  });
  if (!drops) {
    return;
  }
  const fs::path file = file_of(path_);
  std::error_code error;
  const fs::perms permissions = fs::status(file, error).permissions();
  require_done(error, file);
  write_atomically(*real_file_system(), file, [&](WritableFile& out) {
    size_t next = 0;
    for_each_line(file, [&](const std::string& line, bool) {
      if (next < kept.size() && kept[next]) {
        out.append((line + '\n').data(), line.size() + 1);
      }
      ++next;
    });
  });
  fs::permissions(file, permissions, error);
  file_ = detail::FileDescriptor(-1);  // it was the old one
}

void TextFile::start_over(std::string_view heading) {
  if (!has_file_to_change()) {
    return;
  }
  const fs::path file = file_of(path_);
  const std::string all = real_file_system()->read(file);
  const size_t older = std::min(size_at_open_.value_or(all.size()), all.size());
  if (older == 0) {
    return;
  }
  const fs::path aside = free_path_beside(file);
  real_file_system()->rename(file, aside);
  file_ = detail::FileDescriptor(-1);
  size_at_open_ = 0;
  if (older < all.size()) {
    pending_ = std::string(heading) + all.substr(older);
    std::error_code error;
    fs::resize_file(aside, older, error);
    require_done(error, aside);
  }
}

}  // namespace rondo
