#pragma once

#include "data/streams/environment.h"

namespace rondo {

/// A pendulum that is to be swung up and held there with a motor that is too weak to lift it at
/// once. Observation: cosine and sine of the angle, 0 where it stands up, and its speed. Action: a
/// torque in [-2, 2]. An episode has 200 steps of 0.05 s and is cut then.
/// Source: Gymnasium's Pendulum-v1 (Farama Foundation), whose equations it has.
class Pendulum final : public Environment {
 public:
  Description description() const override { return {{3}, {1}, 0, -2.0, 2.0}; }

  at::Tensor reset(uint64_t seed) override;
  Step step(const at::Tensor& action) override;

  /// Puts it into a state: angle and speed, in radians.
  at::Tensor place(double angle, double speed);

 private:
  at::Tensor observation() const;

  double angle_ = 0.0;
  double speed_ = 0.0;
  int64_t steps_ = 0;
};

}  // namespace rondo
