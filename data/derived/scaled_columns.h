#pragma once

#include <cstdint>
#include <vector>

#include "core/dataset_facts.h"

namespace rondo {

/// What windows over a series need of a data set that scales its columns by what it learns.
class ScaledColumns {
 public:
  virtual ~ScaledColumns() = default;

  /// Learns again, from these samples alone: those of the series that train. Not while samples are
  /// taken.
  virtual void learn_from(const std::vector<int64_t>& samples) = 0;

  /// What was done with each number of "features"; empty when it does not know.
  virtual std::vector<DatasetFacts::Target> feature_scales() const = 0;
};

}  // namespace rondo
