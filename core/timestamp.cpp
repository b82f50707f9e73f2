#include "core/timestamp.h"

#include <fmt/format.h>

#include "core/error.h"

namespace rondo {

namespace {

struct CountField {
  const char* name;
  int64_t Timestamp::*field;
};

constexpr CountField kCounts[] = {
    {"epoch", &Timestamp::epoch},
    {"update", &Timestamp::update},
    {"update_in_epoch", &Timestamp::update_in_epoch},
    {"batch", &Timestamp::batch},
    {"batch_in_epoch", &Timestamp::batch_in_epoch},
    {"sample", &Timestamp::sample},
    {"sample_in_epoch", &Timestamp::sample_in_epoch},
    {"token", &Timestamp::token},
    {"token_in_epoch", &Timestamp::token_in_epoch},
};

struct ClockField {
  const char* name;
  double Timestamp::*field;
};

constexpr ClockField kClocks[] = {
    {"total_seconds", &Timestamp::total_seconds},
    {"epoch_seconds", &Timestamp::epoch_seconds},
    {"batch_seconds", &Timestamp::batch_seconds},
};

}  // namespace

void Timestamp::advance_batch(const Advance& by) {
  const int64_t updates = by.is_update ? 1 : 0;
  update += updates;
  update_in_epoch += updates;
  batch += 1;
  batch_in_epoch += 1;
  sample += by.samples;
  sample_in_epoch += by.samples;
  token += by.tokens;
  token_in_epoch += by.tokens;
  total_seconds += by.seconds;
  epoch_seconds += by.seconds;
  batch_seconds = by.seconds;
}

void Timestamp::advance_epoch() {
  epoch += 1;
  restart_epoch();
}

void Timestamp::restart_epoch() {
  update_in_epoch = 0;
  batch_in_epoch = 0;
  sample_in_epoch = 0;
  token_in_epoch = 0;
  epoch_seconds = 0.0;
  batch_seconds = 0.0;
}

int64_t Timestamp::get(TimeUnit unit) const {
  switch (unit) {
    case TimeUnit::Update:
      return update;
    case TimeUnit::Epoch:
      return epoch;
    case TimeUnit::Sample:
      return sample;
    case TimeUnit::Token:
      return token;
    case TimeUnit::Second:
      return static_cast<int64_t>(total_seconds);
    case TimeUnit::Fraction:
      break;
  }
  throw UsageError("a timestamp has no fraction of the run; convert it with counted() first");
}

double Timestamp::amount(TimeUnit unit) const {
  return unit == TimeUnit::Second ? total_seconds : static_cast<double>(get(unit));
}

StateDict Timestamp::state_dict() const {
  StateDict state;
  for (const CountField& count : kCounts) {
    state.set(count.name, this->*count.field);
  }
  for (const ClockField& clock : kClocks) {
    state.set(clock.name, this->*clock.field);
  }
  return state;
}

void Timestamp::load(const StateDict& state) {
  *this = {};
  for (const CountField& count : kCounts) {
    if (const StateValue* value = state.find(count.name)) {
      this->*count.field = value->as_int();
    }
  }
  for (const ClockField& clock : kClocks) {
    if (const StateValue* value = state.find(clock.name)) {
      this->*clock.field = value->as_double();
    }
  }
}

bool crosses(const Time& interval,
             const Timestamp& before,
             const Timestamp& after,
             const RunLength& run) {
  if (interval.value() <= 0.0) {
    return false;
  }
  // Epochs stay: a pass ends where it does.
  const Time period = interval.unit() == TimeUnit::Fraction ? counted(interval, run) : interval;
  return before.get(period.unit()) / period.count() != after.get(period.unit()) / period.count();
}

}  // namespace rondo
