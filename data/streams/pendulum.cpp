#include "data/streams/pendulum.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/random.h"

namespace rondo {

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kGravity = 10.0;
constexpr double kTime = 0.05;  // seconds of a step
constexpr double kMostTorque = 2.0;
constexpr double kMostSpeed = 8.0;
constexpr int64_t kEpisode = 200;

/// The same angle in [-pi, pi).
double wrapped(double angle) {
  const double turns = std::floor((angle + kPi) / (2 * kPi));
  return angle - 2 * kPi * turns;
}

}  // namespace

at::Tensor Pendulum::observation() const {
  at::Tensor seen = at::empty({3}, at::kFloat);
  auto* const value = seen.data_ptr<float>();
  value[0] = static_cast<float>(std::cos(angle_));
  value[1] = static_cast<float>(std::sin(angle_));
  value[2] = static_cast<float>(speed_);
  return seen;
}

at::Tensor Pendulum::place(double angle, double speed) {
  angle_ = angle;
  speed_ = speed;
  steps_ = 0;
  return observation();
}

at::Tensor Pendulum::reset(uint64_t seed) {
  KeyedRandom random(seed);
  const double angle = random.uniform(-kPi, kPi);
  return place(angle, random.uniform(-1.0, 1.0));
}

Environment::Step Pendulum::step(const at::Tensor& action) {
  if (action.numel() != 1) {
    throw ShapeError(fmt::format("Pendulum: an action is one number, got {}", action.numel()));
  }
  const double torque =
      std::clamp(action.reshape({}).to(at::kDouble).item<double>(), -kMostTorque, kMostTorque);
  const double from_top = wrapped(angle_);
  Step step;
  step.reward = -(from_top * from_top + 0.1 * speed_ * speed_ + 0.001 * torque * torque);
  const double force = 1.5 * kGravity * std::sin(angle_) + 3.0 * torque;
  speed_ = std::clamp(speed_ + force * kTime, -kMostSpeed, kMostSpeed);
  angle_ += speed_ * kTime;
  step.observation = observation();
  step.is_cut = ++steps_ >= kEpisode;
  return step;
}

}  // namespace rondo
