#include "cli/rank_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <system_error>

#include "core/error.h"
#include "distributed/launch_environment.h"

namespace rondo {

namespace {

void flush_all() {
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
}

}  // namespace

RankOutput::RankOutput() {
  const auto place = read_launch_environment();
  if (!place || place->rank == 0 || place->is_rondo_launch()) {
    return;
  }
  rank_ = place->rank;
  std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("rondo_rank{}_log_XXXXXX", rank_))
          .string();
  const detail::FileDescriptor file(::mkstemp(path.data()));
  if (file.get() < 0) {
    throw IoError("cannot create the log " + path, errno);
  }
  file_ = path;
  flush_all();
  out_ = detail::FileDescriptor(::dup(STDOUT_FILENO));
  error_ = detail::FileDescriptor(::dup(STDERR_FILENO));
  ::dup2(file.get(), STDOUT_FILENO);
  ::dup2(file.get(), STDERR_FILENO);
}

void RankOutput::end(int code) {
  if (file_.empty()) {
    return;
  }
  flush_all();
  ::dup2(out_.get(), STDOUT_FILENO);
  ::dup2(error_.get(), STDERR_FILENO);
  if (code != 0) {
    std::cerr << fmt::format("rank {} ended with code {}: see {}\n", rank_, code, file_.string());
  } else {
    std::error_code gone;
    std::filesystem::remove(file_, gone);
  }
  file_.clear();
}

}  // namespace rondo
