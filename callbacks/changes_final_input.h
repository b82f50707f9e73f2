#pragma once

namespace rondo {

class Trainer;

/// A second base of callbacks that look at what the model is about to see: after
/// `on_before_forward` of all callbacks, some of which change the input.
class ChangesFinalInput {
 public:
  /// `trainer.state().batch` is the input of the forward that follows, and may be changed.
  /// \capture safe
  virtual void on_final_input(Trainer& trainer) = 0;

 protected:
  ~ChangesFinalInput() = default;
};

}  // namespace rondo
