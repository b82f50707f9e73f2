#include "loggers/text_file.h"

#include <fmt/format.h>

#include <cerrno>

#include "core/error.h"

namespace rondo {

void TextFile::append(std::string_view line) {
  if (!out_.is_open()) {
    out_.open(path_, std::ios::app);
  }
  out_ << line << '\n';
  if (!out_) {
    throw IoError(fmt::format("cannot write {}", path_.string()), errno);
  }
}

void TextFile::flush() {
  if (out_.is_open() && !out_.flush()) {
    throw IoError(fmt::format("cannot write {}", path_.string()), errno);
  }
}

}  // namespace rondo
