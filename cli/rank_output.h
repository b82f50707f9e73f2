#pragma once

#include <filesystem>

#include "core/file_descriptor.h"

namespace rondo {

/// Rank 0 has the terminal. What another rank prints goes to a file of its own, where `mpirun`,
/// `torchrun` or another launcher than rondo's has not seen to that.
class RankOutput {
 public:
  /// Redirects standard output and error of this process where it is such a rank.
  /// \throws UsageError  as `read_launch_environment`
  /// \throws IoError     when there can be no file
  RankOutput();

  /// Gives standard output and error back. A rank that failed leaves its file, and says where it
  /// is. \param code  of the process
  void end(int code);

 private:
  std::filesystem::path file_;  // empty: nothing is redirected
  int rank_ = 0;
  detail::FileDescriptor out_{-1};
  detail::FileDescriptor error_{-1};
};

}  // namespace rondo
