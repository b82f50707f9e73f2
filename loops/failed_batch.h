#pragma once

#include "core/tensor_map.h"
#include "data/data_loader.h"

namespace rondo {

class Trainer;

/// Where a batch comes from.
struct BatchPlace {
  const DataLoader& loader;
  LoaderPosition first;  ///< its first sample
};

/// Within a handler around a step: a ForwardError, a BackwardError, and the CaptureError of a
/// replay that failed, come out saying which samples of which data the batch holds and, where the
/// cause is a value that is no index, which element it is. Others come out as they are.
[[noreturn]] void rethrow_with_place(Trainer& trainer, const Batch& batch, const BatchPlace& place);

}  // namespace rondo
