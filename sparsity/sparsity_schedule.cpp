#include "sparsity/sparsity_schedule.h"

#include <cmath>

#include "core/require.h"

namespace rondo {

namespace {

double share_left(const SparsitySchedule& schedule, double done) {
  constexpr double kPi = 3.14159265358979323846;
  if (schedule.form == "linear") {
    return 1.0 - done;
  }
  if (schedule.form == "cosine") {
    return (1.0 + std::cos(kPi * done)) / 2.0;
  }
  return schedule.form == "polynomial" ? std::pow(1.0 - done, schedule.power) : 0.0;
}

bool is_share(double number) {
  return number >= 0.0 && number < 1.0;
}

}  // namespace

double SparsitySchedule::at(double done) const {
  return done >= 1.0 ? to : to + (from - to) * share_left(*this, done);
}

void SparsitySchedule::check() const {
  detail::require(is_share(to), "sparsity: sparsity", "in [0, 1)", to);
  detail::require(is_share(from), "sparsity: sparsity.from", "in [0, 1)", from);
  detail::require(power > 0.0, "sparsity: sparsity.power", "> 0", power);
  detail::require(
      form == "constant" || form == "linear" || form == "cosine" || form == "polynomial",
      "sparsity: sparsity.form",
      R"("constant", "linear", "cosine" or "polynomial")",
      form);
}

}  // namespace rondo
