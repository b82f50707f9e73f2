#pragma once

namespace rondo {

class Trainer;

/// A second base of the callback that decides what becomes of a run whose loss or gradients are not
/// finite. Without one such a loss ends the run.
class DecidesOnNan {
 public:
  /// Whether an update whose gradients are not finite leaves parameters and optimizer as they are.
  virtual bool skips_updates() const = 0;

  /// Told of a loss that is not finite. \return whether the run continues
  virtual bool continues_after(Trainer&, double loss) = 0;

  /// Told of a fit that ended with a NonFiniteLossError. \return whether it begins again from
  /// `State::last_checkpoint`
  virtual bool rolls_back(Trainer&) = 0;

 protected:
  ~DecidesOnNan() = default;
};

}  // namespace rondo
