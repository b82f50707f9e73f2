#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace rondo {

/// The mask of one parameter. Tensors of its shape get zero bits where the mask has none: a product
/// would leave -0 for a negative element and NaN for an infinite one.
class Mask {
 public:
  /// Keeps everything. \throws NotSupportedError  when the parameter is not floating
  Mask(std::string name, at::Tensor weight);

  const std::string& name() const { return name_; }

  const at::Tensor& weight() const { return weight_; }

  /// What an optimizer updates: the weight, or its float32 master.
  const at::Tensor& updated() const { return updated_; }

  /// The weight is rounded from `updated` after each update.
  void set_updated(at::Tensor updated) { updated_ = std::move(updated); }

  /// Integers of the weight's width: all bits set, none where it is pruned.
  const at::Tensor& bits() const { return bits_; }

  /// bool: true where it is kept.  \capture safe
  at::Tensor kept() const;

  /// In place.  \capture safe
  void set(const at::Tensor& kept);

  /// Tensors of the weight's shape that are masked with `zero_states`; others are left out.
  void add_state(const at::Tensor& state);

  /// And its master.  \capture safe
  void zero_weight() const;

  /// The gradient by which the weight is updated: a master's where there is one.  \capture safe
  void zero_gradient() const;

  /// A floating tensor of the weight's shape.  \capture safe
  void zero(const at::Tensor& tensor) const;

  /// \capture safe
  void zero_states() const;

 private:
  std::string name_;
  at::Tensor weight_;
  at::Tensor updated_;
  at::Tensor bits_;
  std::vector<at::Tensor> states_;
};

}  // namespace rondo
