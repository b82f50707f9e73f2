#pragma once

#include <cstdint>
#include <string>

#include "callbacks/algorithm.h"

namespace rondo {

/// Hands pictures to the model with their channels last in memory; what a step's plan makes of
/// it is its choice, and results can be rounded differently.
/// Source: Composer's ChannelsLast
class ChannelsLast final : public Algorithm {
 public:
  struct Options {
    std::string input = "image";  ///< in the batch: floating [B, channels, height, width]
  };

  explicit ChannelsLast(const Options& options);

  bool match(Event event, const State& state) const override;
  void apply(Event event, Trainer& trainer) override;

 private:
  Options options_;
};

}  // namespace rondo
