#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint_file.h"
#include "checkpoint/internal/zip_writer.h"
#include "core/error.h"
#include "core/file_system.h"
#include "core/state_dict.h"
#include "support/contains.h"

namespace rondo::test {

inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::filesystem::path python_file(const char* name) {
  return std::filesystem::path(RONDO_SOURCE_DIR) / "tests/checkpoint/data" / name;
}

/// How often a campaign repeats its default number of cases.
inline int campaign_scale() {
  const char* scale = std::getenv("RONDO_TEST_SCALE");
  return scale == nullptr ? 1 : std::max(1, std::atoi(scale));
}

/// The text of the CheckpointError that reading throws, nested messages included; "" when it reads.
/// Any other exception passes.
inline std::string read_error(const std::filesystem::path& path) {
  try {
    read_checkpoint(path);
  } catch (const CheckpointError&) {
    return describe(std::current_exception());
  }
  return "";
}

/// Reads the file; when it reads, walks over every value as a user would.
/// \return true when it was refused with a CheckpointError. Anything else passes.
inline bool is_refused(const std::filesystem::path& path) {
  try {
    const StateDict state = read_checkpoint(path);
    first_difference(state, state);
    return false;
  } catch (const CheckpointError& error) {
    CHECK(contains(error.what(), path.filename().string()));
    return true;
  }
}

using Records = std::vector<std::pair<std::string, std::string>>;

/// A well-formed archive with correct checksums around whatever the records hold.
inline void write_archive(const std::filesystem::path& path,
                          const Records& records,
                          uint32_t zip64_from = std::numeric_limits<uint32_t>::max()) {
  std::filesystem::remove(path);
  const auto file = real_file_system()->create(path);
  detail::ZipWriter zip(*file, zip64_from);
  for (const auto& [name, bytes] : records) {
    zip.add(name, bytes);
  }
  zip.finish();
  file->close();
}

/// A bit of everything, in a file of about 3 KB.
StateDict sample_state();

}  // namespace rondo::test
