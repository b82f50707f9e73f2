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

  /// Integers of the weight's width: all bits set, none where it is pruned.
  const at::Tensor& bits() const { return bits_; }

  /// bool: true where it is kept.  \capture safe
  at::Tensor kept() const;

  /// In place.  \capture safe
  void set(const at::Tensor& kept);

  /// Tensors of the weight's shape that are masked with `zero_states`; others are left out.
  void add_state(const at::Tensor& state);

  /// \capture safe
  void zero_weight() const;

  /// \capture safe
  void zero_gradient() const;

  /// \capture safe
  void zero_states() const;

 private:
  void zero(const at::Tensor& tensor) const;

  std::string name_;
  at::Tensor weight_;
  at::Tensor bits_;
  std::vector<at::Tensor> states_;
};

}  // namespace rondo
