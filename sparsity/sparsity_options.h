#pragma once

#include <string>
#include <vector>

#include "core/factory.h"
#include "core/time.h"
#include "sparsity/sparsity_schedule.h"

namespace rondo {

class SparsityAlgorithm;

/// When masks change: at multiples of `every` after `start` and up to `stop`, and once at `stop`.
/// In this window schedules take their course.
struct MaskUpdateOptions {
  Time every = 100;
  Time start = 0;
  Time stop = 0.75;
};

/// Which weights are held at zero, and how that changes.
struct SparsityOptions {
  SparsitySchedule sparsity = 0.0;  ///< share of the weights that is zero; always 0: no masks
  std::vector<std::string> params =
      {};  ///< globs of names; none: every one of two or more dimensions
  Factory<SparsityAlgorithm> algorithm = {};  ///< how masks change; empty: Static, never
  /// The first mask: "topk" keeps the largest magnitudes, "random" any, "from_zeros" what is not
  /// zero, whatever the share is.
  std::string init = "topk";
  /// "balanced": each parameter has the share of zeros; "global": all of them together.
  std::string distribution = "balanced";
  MaskUpdateOptions update = {};
  /// Parameters with options of their own. The first group that picks a parameter has it; the
  /// options around the groups are the last one.
  std::vector<SparsityOptions> groups = {};
};

}  // namespace rondo
