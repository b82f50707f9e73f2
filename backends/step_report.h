#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rondo {

/// What recording and replaying one step cost and gave.
struct StepStats {
  int64_t operators_recorded = 0;
  int64_t operators_replayed = 0;                        ///< after clean-up, with every closure due
  std::vector<std::pair<std::string, int64_t>> removed;  ///< operators, by each pass
  int64_t captured_bytes = 0;                            ///< state that the step reads or writes
  int64_t arena_bytes = 0;                               ///< for what the step computes
  double capture_s = 0.0;                                ///< both captures: two real steps
  double build_s = 0.0;                                  ///< clean-up and building what is run
  double verify_s = 0.0;                                 ///< comparisons with eager
  int64_t replays = 0;
};

/// One recorded step, for people and tools.
struct StepReport {
  std::string name;  ///< fits a file name, such as "train_update.0"
  StepStats stats;
  std::string program;  ///< text of the program that is replayed
  std::string plan;     ///< text: where and how each instruction runs; "" without a plan
  std::string graph;    ///< text of the TorchScript graph made from it
};

}  // namespace rondo
