#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>

#include "data/data_loader.h"

namespace rondo {

/// A sample of a loader's data, or why it cannot be read.
struct VisitedSample {
  int64_t number = 0;
  std::string name = {};
  Sample sample = {};
  std::exception_ptr error = {};  ///< what reading it threw; `sample` is empty then
};

/// Visits samples of a loader's data, without shuffle, draws and padding. Data that is reached by
/// index gives samples spread evenly over it; data that is not gives the first ones of a pass, and
/// ends with the first that cannot be read.
/// \param most  samples, >= 1
/// \throws DataError  when the data set cannot be built
void visit_samples(const DataLoader& loader,
                   int64_t most,
                   const std::function<void(const VisitedSample&)>& visit);

}  // namespace rondo
