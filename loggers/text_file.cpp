#include "loggers/text_file.h"

#include <fmt/format.h>

#include <cerrno>

#include "core/error.h"

namespace rondo {

void TextFile::append(std::string_view line) {
  if (!out_.is_open()) {
    open();
  }
  out_ << line << '\n';
  check();
}

void TextFile::flush() {
  if (out_.is_open()) {
    out_.flush();
    check();
  }
}

void TextFile::open() {
  std::ifstream before(path_, std::ios::binary | std::ios::ate);
  bool is_cut_short = false;
  if (before && before.tellg() > 0) {
    before.seekg(-1, std::ios::end);
    is_cut_short = before.get() != '\n';
  }
  out_.open(path_, std::ios::app);
  if (is_cut_short) {
    out_ << '\n';
  }
}

void TextFile::check() {
  const bool was_failing = is_failing_;
  is_failing_ = !out_;
  out_.clear();  // a full disk may have room again
  if (is_failing_ && !was_failing) {
    throw IoError(fmt::format("cannot write {}", path_.string()), errno);
  }
}

}  // namespace rondo
