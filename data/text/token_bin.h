#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/mapped_file.h"
#include "data/text/token_windows.h"

namespace rondo {

/// A file of little-endian token numbers and nothing else, mapped into memory, as windows. A sample
/// has "tokens" and "targets", both int64 [context]; the targets are the tokens one further on.
class TokenBin final : public Dataset {
 public:
  struct Options {
    std::string file = {};               ///< name or path; must be given
    int64_t context = 1024;              ///< tokens of a window, >= 1
    std::string dtype = "uint16";        ///< "uint16" or "uint32"
    std::optional<int64_t> stride = {};  ///< between windows, >= 1; `context` if absent
    std::optional<std::filesystem::path> data_dir = {};  ///< else the environment's RONDO_DATA
    std::string folder = {};                             ///< of data_dir, looked into as well
  };

  /// \throws DataError  when the file is no whole number of tokens, or too short for one window
  explicit TokenBin(const Options& options);

  int64_t size() const override { return windows_.size(); }

  Sample get(int64_t index) const override;
  Batch get_batch(const std::vector<int64_t>& indices) const override;

 private:
  TokenBin(const Options& options, const std::filesystem::path& path);

  MappedFile file_;
  bool is_wide_;  // uint32
  TokenWindows windows_;
};

}  // namespace rondo
