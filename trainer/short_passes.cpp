#include "trainer/short_passes.h"

#include <algorithm>
#include <cstdint>

#include "callbacks/core/run_plan.h"
#include "callbacks/core/run_schedule_callback.h"
#include "core/timestamp.h"
#include "data/dataset.h"

namespace rondo {

namespace {

constexpr int64_t kWholeGroups = 2;  // of a short pass; the second has what the first one lacks

// Both captures and a replay: each pass has one such end.
constexpr int64_t kPasses = 3;

/// Whether fewer samples of the data are a shorter pass with the same shapes of batches.
bool can_be_cut(const DataLoader& loader) {
  return loader.last_size() && !loader.options().draws;
}

}  // namespace

DataLoader with_short_passes(const DataLoader& loader, const LoopOptions& loop) {
  const auto* const data = dynamic_cast<const Dataset*>(&loader.source());
  if (data == nullptr || loop.train_subset_num_batches || !can_be_cut(loader)) {
    return loader;  // with a subset, passes are as long as they are asked for
  }
  const int64_t all = *loader.samples();
  const int64_t batch_size = loader.options().batch_size;
  const int64_t whole_batches = all / batch_size;
  const int64_t whole_groups = whole_batches / loop.grad_accum_steps;
  const int64_t updates = *updates_of_pass(loader, loop);
  if (updates == whole_groups || whole_groups <= kWholeGroups) {
    return loader;
  }
  const int64_t samples = loader.options().drop_last ? whole_batches * batch_size : all;
  Timestamp before_end;  // of the pass in which the end is replayed
  before_end.epoch = kPasses - 1;
  before_end.update = kPasses * updates - 1;
  before_end.batch = kPasses * *loader.size() - 1;
  before_end.sample = kPasses * samples - 1;
  const bool comes_to_end = !RunPlan(loop, Timestamp(), updates).is_over(before_end);
  const int64_t left_out = (whole_groups - kWholeGroups) * loop.grad_accum_steps * batch_size;
  return comes_to_end ? loader.first(all - left_out) : loader;
}

Loaders with_short_validations(const Loaders& loaders, const LoopOptions& loop) {
  Loaders shorter;
  for (const DataLoader& loader : loaders) {
    const auto* const data = dynamic_cast<const Dataset*>(&loader.source());
    const int64_t pass = loader.size().value_or(0);
    if (data == nullptr || pass == 0 || !can_be_cut(loader)) {
      shorter.push_back(loader);
      continue;
    }
    const int64_t batch_size = loader.options().batch_size;
    const int64_t wanted =
        loop.eval_steps ? std::min(pass, counted(*loop.eval_steps, {pass, pass}).count()) : pass;
    int64_t samples = std::min(wanted, kShortValidation) * batch_size;
    if (wanted == pass) {
      samples -= batch_size - *loader.last_size();
    }
    shorter.push_back(loader.first(samples));
  }
  return shorter;
}

}  // namespace rondo
