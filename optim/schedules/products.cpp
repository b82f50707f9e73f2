#include "optim/schedules/products.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/registry.h"
#include "optim/internal/schedule_parts.h"
#include "optim/register.h"
#include "optim/schedules/target_keys.h"

namespace rondo {

namespace {

template <class T>
void register_product(Registry<Scheduler>& registry, const char* name, const char* doc) {
  using Options = ScheduleProduct::Options;
  KeyTable<Options>& keys = registry.add<T>(name, doc);
  keys.key_of("schedulers",
              &Options::schedulers,
              ComponentListOption<Scheduler>(registry),
              "the schedules that are multiplied")
      .required();
  add_target_keys(keys);
}

}  // namespace

ScheduleProduct::ScheduleProduct(const std::string& name, const Options& options)
    : Scheduler(options.target),
      parts_(detail::make_parts(name, options.schedulers, options.target)) {}

void ScheduleProduct::count_durations(DurationCounter& counter) {
  for (const auto& part : parts_) {
    part->count(counter);
  }
}

double ScheduleProduct::length() const {
  double longest = 0.0;
  for (const auto& part : parts_) {
    longest = std::max(longest, part->length());
  }
  return longest;
}

double ProductLR::value(double done) const {
  double product = 1.0;
  for (const auto& part : parts()) {
    product *= part->at(done);
  }
  return product;
}

void ChainedScheduler::count_durations(DurationCounter& counter) {
  ScheduleProduct::count_durations(counter);
  for (size_t i = 1; i < parts().size(); ++i) {
    if (parts()[i]->at(0.0) == 0.0) {
      throw UsageError(
          fmt::format("ChainedScheduler.schedulers[{}]: it begins at 0, so nothing can be a factor "
                      "of that; use ProductLR",
                      i));
    }
  }
}

double ChainedScheduler::value(double done) const {
  double product = parts().front()->at(done);
  for (size_t i = 1; i < parts().size(); ++i) {
    product *= parts()[i]->at(done) / parts()[i]->at(0.0);
  }
  return product;
}

void register_schedule_products(Registry<Scheduler>& registry) {
  register_product<ChainedScheduler>(
      registry, "ChainedScheduler", "A schedule, times how others have changed.");
  register_product<ProductLR>(registry, "ProductLR", "The product of several schedules.");
}

}  // namespace rondo
