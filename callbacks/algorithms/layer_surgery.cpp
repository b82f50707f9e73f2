#include "callbacks/algorithms/layer_surgery.h"

#include <fmt/format.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "backends/operator_replacement.h"
#include "core/error.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

/// Operators of layers, with the place of their weight among the arguments; a bias is next to it.
constexpr std::pair<const char*, size_t> kOperators[] = {{"linear", 1},
                                                         {"t", 0},
                                                         {"conv1d", 1},
                                                         {"conv2d", 1},
                                                         {"conv3d", 1},
                                                         {"batch_norm", 1},
                                                         {"layer_norm", 2},
                                                         {"group_norm", 2}};

}  // namespace

const at::Tensor& LayerCall::input() const {
  return arguments_.front().toTensor();
}

const c10::IValue& LayerCall::argument(size_t place) const {
  return arguments_.at(place);
}

at::Tensor LayerCall::operator()(const at::Tensor& input) const {
  return with({{0, input}});
}

at::Tensor LayerCall::with_weight(const at::Tensor& input,
                                  const at::Tensor& weight,
                                  bool has_bias) const {
  std::vector<std::pair<size_t, c10::IValue>> others{{0, input}, {weight_, weight}};
  if (!has_bias) {
    others.emplace_back(weight_ + 1, c10::IValue());
  }
  return with(std::move(others));
}

at::Tensor LayerCall::with(std::vector<std::pair<size_t, c10::IValue>> others) const {
  torch::jit::Stack stack(arguments_.begin(), arguments_.end());
  for (auto& [place, value] : others) {
    stack.at(place) = std::move(value);
  }
  op_.callBoxed(&stack);
  return stack.front().toTensor();
}

class LayerSurgery::Replacement final : public OperatorReplacement {
 public:
  bool replace(const c10::OperatorHandle& op,
               std::string_view name,
               torch::jit::Stack& stack) override {
    const size_t count = op.schema().arguments().size();
    const auto first = stack.end() - static_cast<std::ptrdiff_t>(count);
    size_t weight = 0;
    const LayerForward* forward = nullptr;
    if (const auto plain = by_operator.find(std::string(name)); plain != by_operator.end()) {
      forward = &plain->second;
    } else {
      const auto known = std::find_if(std::begin(kOperators),
                                      std::end(kOperators),
                                      [&](const auto& layer) { return layer.first == name; });
      if (known == std::end(kOperators)) {
        return false;
      }
      weight = known->second;
      const c10::IValue& value = *(first + static_cast<std::ptrdiff_t>(weight));
      const auto found = value.isTensor() ? by_weight.find(value.toTensor().unsafeGetTensorImpl())
                                          : by_weight.end();
      forward = found != by_weight.end() ? &found->second : nullptr;
    }
    if (forward == nullptr) {
      return false;
    }
    const std::vector<c10::IValue> arguments(first, stack.end());
    const at::Tensor result = (*forward)(LayerCall(op, name, arguments, weight));
    stack.erase(first, stack.end());
    stack.emplace_back(result);
    return true;
  }

  std::map<const c10::TensorImpl*, LayerForward> by_weight;  // parameters keep theirs for life
  std::map<std::string, LayerForward> by_operator;
};

LayerSurgery::LayerSurgery() : replacement_(std::make_unique<Replacement>()) {}

LayerSurgery::~LayerSurgery() = default;

bool LayerSurgery::match(Event event, const State&) const {
  return event == Event::Init;
}

void LayerSurgery::apply(Event, Trainer& trainer) {
  change(trainer.state().model->module());
  const size_t layers = replacement_->by_weight.size();
  if (layers == 0 && replacement_->by_operator.empty()) {
    throw UsageError(
        "the model has no layer that it changes; lower its smallest size, or remove it");
  }
  trainer.log().info(fmt::format("{} changes {} layers", class_name(typeid(*this)), layers));
}

void LayerSurgery::begin_forward() {
  replacement_->install();
}

void LayerSurgery::end_forward() noexcept {
  replacement_->remove();
}

void LayerSurgery::replace(torch::nn::Module& layer, LayerForward forward) {
  const auto parameters = layer.named_parameters(/*recurse=*/false);
  const at::Tensor* const weight = parameters.find("weight");
  if (weight == nullptr || !weight->defined()) {
    throw UsageError(
        fmt::format("a {} has no weight, so its call cannot be recognised", layer.name()));
  }
  replacement_->by_weight.emplace(weight->unsafeGetTensorImpl(), std::move(forward));
}

void LayerSurgery::replace(const std::string& op, LayerForward forward) {
  replacement_->by_operator.emplace(op, std::move(forward));
}

}  // namespace rondo
