#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rondo {

/// What the live block of a run shows.
struct ProgressFacts {
  /// A metric with its newest value, and its best one where a direction is known.
  struct Value {
    std::string name;
    double newest = 0.0;
    std::optional<double> best;
    int64_t best_update = 0;
  };

  int64_t update = 0;
  std::optional<int64_t> updates;      ///< of the run
  double share = 0.0;                  ///< of the run that is done, in [0, 1]; 0: not known
  int64_t epoch = 0;                   ///< completed passes over the training data
  std::optional<double> seconds_left;  ///< of training
  std::string pass;                    ///< "train", or what is validated
  int64_t done = 0;                    ///< updates of training until the next validation, or
                                       ///< batches of a validation
  std::optional<int64_t> all;          ///< of them
  double updates_per_s = 0.0;          ///< of training; 0: not known yet
  double samples_per_s = 0.0;
  std::optional<int64_t> memory;  ///< bytes of the process
  std::optional<int64_t> saved;   ///< update of the newest checkpoint
  std::vector<Value> values;
};

/// The block's lines, each of at most `columns` characters: the run with a bar, the pass with a
/// bar, metrics, speed and memory.
std::vector<std::string> progress_lines(const ProgressFacts& facts, int columns);

}  // namespace rondo
