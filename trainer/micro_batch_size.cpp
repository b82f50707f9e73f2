#include "trainer/micro_batch_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <vector>

#include "core/error.h"
#include "trainer/dry_run.h"
#include "trainer/run_memory.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

constexpr size_t kFirst = 3;  // of the sizes that are tried: an eighth of a batch

/// `batch`, its half and so on, each rounded up, down to 1.
std::vector<int64_t> halves_of(int64_t batch) {
  std::vector<int64_t> sizes = {batch};
  while (sizes.back() > 1) {
    sizes.push_back((sizes.back() + 1) / 2);
  }
  return sizes;
}

}  // namespace

std::optional<int64_t> largest_that_fits(int64_t batch,
                                         int64_t limit,
                                         const PredictBytes& predict) {
  const std::vector<int64_t> sizes = halves_of(batch);
  size_t at = std::min(kFirst, sizes.size() - 1);
  int64_t bytes = predict(sizes[at]);
  if (bytes > limit) {
    for (++at; at < sizes.size(); ++at) {
      if (predict(sizes[at]) <= limit) {
        return sizes[at];
      }
    }
    return std::nullopt;
  }
  int64_t of_a_sample = 0;
  while (at > 0) {
    const int64_t more = sizes[at - 1] - sizes[at];
    if (bytes + more * of_a_sample > limit) {
      break;
    }
    const int64_t larger = predict(sizes[at - 1]);
    if (larger > limit) {
      break;
    }
    of_a_sample = std::max<int64_t>(0, (larger - bytes) / more);
    bytes = larger;
    --at;
  }
  return sizes[at];
}

int64_t predicted_bytes(RunConfig run, int64_t samples) {
  run.init.backend.mode = "traced";
  run.init.backend.executor = "plan";
  run.init.loop.device_train_microbatch_size = samples;
  run.init.loop.memory_limit.reset();
  const DryRun dry = dry_run_of_all_steps(run);
  const RunMemory all = memory_of(dry, run);
  const int64_t for_undoing = all.of_state();
  return dry.before + all.peak + most_beside(all, run) + for_undoing;
}

std::optional<int64_t> largest_that_fits(const RunConfig& run, int64_t limit) {
  return largest_that_fits(run.fit->train.options().batch_size, limit, [&](int64_t samples) {
    return predicted_bytes(run, samples);
  });
}

std::optional<int64_t> predicted_micro_batch(const Trainer& trainer,
                                             const DataLoader& train,
                                             const Loaders& val,
                                             int64_t limit) {
  RunConfig run;
  run.init = trainer.options();
  run.fit = RunConfig::Fit{train, val, LoadFrom::nothing()};
  std::optional<int64_t> size;
  try {
    size = largest_that_fits(run, limit);
  } catch (const Error&) {
    trainer.log().warning(
        fmt::format("loop.memory_limit: the memory of the run cannot be predicted, so that "
                    "micro-batches are whole batches until memory runs out: {}",
                    describe(std::current_exception())));
    return std::nullopt;
  }
  if (!size) {
    throw UsageError(
        fmt::format("loop.memory_limit: the run is predicted to take more than {} bytes even with "
                    "one sample at once; raise the limit, or take a smaller model",
                    limit));
  }
  return size;
}

}  // namespace rondo
