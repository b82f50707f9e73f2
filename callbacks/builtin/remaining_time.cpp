#include "callbacks/builtin/remaining_time.h"

#include <cmath>

namespace rondo {

void RemainingTime::train(double share, double seconds) {
  now_ = {share, seconds};
  if (!begin_) {
    begin_ = now_;
  }
}

void RemainingTime::validation(const std::string& label, double seconds) {
  if (!begin_) {
    return;
  }
  Validations& done = validations_[label];
  if (done.count == 0) {
    done.first_share = now_.share;
    done.first_seconds = seconds;
  } else {
    done.other_seconds += seconds;
  }
  done.last_share = now_.share;
  ++done.count;
}

std::optional<double> RemainingTime::seconds() const {
  if (!begin_ || now_.share <= begin_->share) {
    return std::nullopt;
  }
  const double of_whole = (now_.seconds - begin_->seconds) / (now_.share - begin_->share);
  double remaining = of_whole * (1.0 - now_.share);
  for (const auto& item : validations_) {
    remaining += seconds_of(item.second);
  }
  return remaining;
}

double RemainingTime::seconds_of(const Validations& done) const {
  const double others = static_cast<double>(done.count - 1);
  const double interval =
      done.count > 1 ? (done.last_share - done.first_share) / others : done.first_share;
  if (interval <= 0.0) {
    return 0.0;
  }
  const double one = done.count > 1 ? done.other_seconds / others : done.first_seconds;
  return one * std::round((1.0 - done.last_share) / interval);
}

}  // namespace rondo
