#pragma once

#include "support/tiny_run.h"
#include "trainer/trainer.h"

namespace rondo::test {

/// A run of the tiny loaders, with a validation.
inline void fit(const TrainerOptions& options, const LoadFrom& from = {}) {
  Trainer(options, quiet_log()).fit(tiny_loader("train"), {tiny_loader("val")}, from);
}

}  // namespace rondo::test
