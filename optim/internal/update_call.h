#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <vector>

#include "optim/internal/rule.h"
#include "optim/internal/update_parts.h"

namespace rondo::detail {

/// What an operator of an update gets. Lists of states and counters have those of the first
/// parameter first: all of one parameter side by side.
struct UpdateArguments {
  std::vector<at::Tensor> params;
  std::vector<at::Tensor> grads;
  std::vector<at::Tensor> states;
  std::vector<at::Tensor> counters;
  std::vector<at::Tensor> numbers;  ///< of the group, 0-dim float64
  at::Tensor skip;                  ///< 0-dim bool: true changes nothing; undefined: false
  at::Tensor grad_scale;            ///< what gradients are multiplied by first; undefined: nothing
};

/// A rule with the tensors that it updates: what is found out about them is found out once.
class UpdateCall {
 public:
  /// \throws c10::Error  when the lists do not go together
  UpdateCall(const CompiledRule& rule, UpdateArguments arguments);

  void operator()();

 private:
  void derive();
  void update_tensors(size_t i);
  void update_on_devices();
  std::vector<at::Tensor> numbers_on_device() const;
  std::vector<at::Tensor> tensors_of(size_t i) const;
  bool is_skipped() const;
  void scale_gradients() const;
  at::Tensor unless_skipped(const at::Tensor& fresh, const at::Tensor& old) const;
  void put(size_t i, const std::vector<at::Tensor>& values);
  template <class T>
  void update_elements(const UpdateParts& parts,
                       void (*update)(const double*, T* const*, int64_t, InstructionSet)) const;

  const CompiledRule& rule_;
  UpdateArguments all_;
  bool is_on_host_ = true;  // with the numbers
  UpdateKinds kinds_;
  // Kept, so that an update allocates nothing.
  std::vector<double> given_;
  std::vector<double> counters_;  // of each parameter
  std::vector<double> next_counters_;
  std::vector<double> derived_;  // of each parameter
};

}  // namespace rondo::detail
