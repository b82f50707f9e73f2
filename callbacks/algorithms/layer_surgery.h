#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "callbacks/algorithm.h"
#include "callbacks/changes_forward.h"

namespace c10 {
class OperatorHandle;
}  // namespace c10

namespace torch::nn {
class Module;
}

namespace rondo {

/// A call of a layer's operator that something stands in for.
class LayerCall {
 public:
  LayerCall(const c10::OperatorHandle& op,
            std::string_view name,
            const std::vector<c10::IValue>& arguments,
            size_t weight)
      : op_(op), name_(name), arguments_(arguments), weight_(weight) {}

  /// "conv2d" and the like; "t" where a Linear of LibTorch transposes its weight, of which it makes
  /// a product next.
  std::string_view name() const { return name_; }

  const at::Tensor& input() const;

  /// An argument of the operator, such as the stride of a convolution, by its place.
  const c10::IValue& argument(size_t place) const;

  /// What the layer makes of another input.
  at::Tensor operator()(const at::Tensor& input) const;

  /// The same with another weight, and without the layer's bias where that is asked for.
  at::Tensor with_weight(const at::Tensor& input, const at::Tensor& weight, bool has_bias) const;

  /// The same with other arguments in some places.
  at::Tensor with(std::vector<std::pair<size_t, c10::IValue>> others) const;

 private:
  const c10::OperatorHandle& op_;
  std::string_view name_;
  const std::vector<c10::IValue>& arguments_;
  size_t weight_;
};

/// What is computed in the place of a layer.  \capture safe: tensor work only
using LayerForward = std::function<at::Tensor(const LayerCall& layer)>;

/// An algorithm that changes layers of the model, before an optimizer takes its parameters. The
/// forward of LibTorch's layers cannot be overridden, and a module keeps them in members of their
/// own type. So the layers stay where they are, and what they call is exchanged: the operator with
/// the layer's weight. New parameters become parts of the layer (`register_module`,
/// `register_parameter`), so that they are trained and saved with it.
///
/// One of your own derives from it and says in `change` what stands in for which layers. Layers
/// that can be changed are Linear, convolutions, and batch, layer and group norms with a weight.
/// The change holds within the steps of a run, and not for code that calls the module itself.
class LayerSurgery : public Algorithm, public ChangesForward {
 public:
  LayerSurgery();
  ~LayerSurgery() override;

  bool match(Event event, const State& state) const final;

  /// \throws UsageError  when nothing in the model can be changed
  void apply(Event event, Trainer& trainer) final;

  bool required_on_load() const override { return true; }

  void begin_forward() override;
  void end_forward() noexcept override;

 protected:
  /// Says with `replace` what stands in for layers of the model.
  virtual void change(torch::nn::Module& model) = 0;

  /// From here on, `forward` is computed where the layer's forward calls its operator.
  /// \throws UsageError  for a layer without a weight
  void replace(torch::nn::Module& layer, LayerForward forward);

  /// The same for every call of an operator without a weight, such as "max_pool2d".
  void replace(const std::string& op, LayerForward forward);

 private:
  class Replacement;

  std::unique_ptr<Replacement> replacement_;
};

}  // namespace rondo
