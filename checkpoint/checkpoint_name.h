#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/file_system.h"
#include "core/timestamp.h"

namespace rondo {

/// The values of the fields in a checkpoint's name.
struct CheckpointNameValues {
  Timestamp time;  ///< {step} is its updates
  int64_t rank = 0;
  int64_t world_size = 1;
  int64_t local_rank = 0;  ///< among the ranks of this host
  int64_t node_rank = 0;   ///< number of this host
  std::string run_name;
  /// The time of the save: {date}, {time} and the suffix, in UTC.
  std::chrono::system_clock::time_point now = std::chrono::system_clock::now();
};

/// The step in a checkpoint's name and the suffix of a second save at that step. Sorts by step as a
/// number, then by suffix, with none first.
struct CheckpointStep {
  int64_t step = 0;
  std::string suffix;  ///< "YYYYmmdd_HHMMSS" or ""

  bool operator<(const CheckpointStep& other) const {
    return step != other.step ? step < other.step : suffix < other.suffix;
  }
};

/// A template such as "checkpoint_{step}.pt". Its fields: {step}, which is required; {epoch},
/// {batch}, {batch_in_epoch}, {sample}, {sample_in_epoch}, {token}, {token_in_epoch}; the training
/// time {total_wct}, {epoch_wct}, {batch_wct} in seconds with three decimals; {rank}, {world_size},
/// {local_rank}, {node_rank} of the process that writes; {run_name};
/// {date} as YYYYmmdd and {time} as HHMMSS. Each may occur once; text other than digits must
/// separate two of them, so that names can be parsed. The names of fields are Composer's.
class CheckpointName {
 public:
  /// \throws UsageError  naming the template and the error
  explicit CheckpointName(std::string pattern = "checkpoint_{step}.pt");

  const std::string& pattern() const { return pattern_; }

  /// True when files of these names are compressed.
  bool is_compressed() const;

  /// \throws UsageError  when the run's name contains a "/"
  std::string format(const CheckpointNameValues& values) const;

  /// The same, with `_YYYYmmdd_HHMMSS` of `values.now` before the extension.
  std::string format_with_suffix(const CheckpointNameValues& values) const;

  /// The step of a file name (not a path) that matches this template; none for any other name.
  std::optional<CheckpointStep> match(std::string_view name) const;

 private:
  /// Text, or a field's name.
  struct Part {
    std::string text;
    bool is_field = false;
  };

  struct Matcher;

  void check_parts() const;
  std::shared_ptr<const Matcher> make_matcher() const;

  std::string pattern_;
  std::vector<Part>
      parts_;  ///< a text between two fields, at the start and at the end; may be empty
  std::shared_ptr<const Matcher> matcher_;
};

/// An unused path in `directory`: the template's, or with a suffix for the time of the save or the
/// first free second after it.
std::filesystem::path free_checkpoint_path(FileSystem& files,
                                           const std::filesystem::path& directory,
                                           const CheckpointName& name,
                                           CheckpointNameValues values);

}  // namespace rondo
