#include "models/from_module.h"

#include <ATen/ops/mse_loss.h>
#include <c10/util/StringUtil.h>
#include <torch/nn/module.h>

#include <exception>

#include "core/error.h"
#include "metrics/accuracy.h"
#include "metrics/regression_error.h"
#include "models/forward_error.h"
#include "models/losses/class_losses.h"
#include "models/with_loss.h"

namespace rondo {

namespace {

class FunctionModel final : public Model {
 public:
  FunctionModel(detail::TensorModule module, std::string input, Loss loss)
      : module_(std::move(module)), input_(std::move(input)), loss_(std::move(loss)) {}

  torch::nn::Module& module() override { return *module_.module; }

  Outputs forward(const Batch& batch) override {
    const at::Tensor output = module_.forward(batch[input_]);
    if (!loss_.target.empty() && batch.find(loss_.target) == nullptr) {
      return {{"logits", output}};
    }
    return with_loss(
        {{"logits", output}}, batch, [this](const Outputs& outputs, const Batch& targets) {
          return loss_of(outputs["logits"], targets);
        });
  }

  std::vector<Factory<Metric>> metrics() const override { return loss_.metrics; }

 private:
  at::Tensor loss_of(const at::Tensor& output, const Batch& batch) const {
    try {
      return loss_.function(output, batch);
    } catch (const Error&) {
      throw;
    } catch (...) {
      std::throw_with_nested(ForwardError("its loss failed on " + to_text({{"logits", output}})));
    }
  }

  detail::TensorModule module_;
  std::string input_;
  Loss loss_;
};

}  // namespace

Loss cross_entropy(std::string label) {
  const auto function = [label](const at::Tensor& output, const Batch& batch) {
    return CrossEntropyLoss().mean(output, batch[label], label);
  };
  Accuracy::Options accuracy;
  accuracy.label = label;
  return {function, std::move(label), {use<Accuracy>(accuracy)}};
}

Loss loss_of(const Factory<Criterion>& loss, std::string target) {
  const std::shared_ptr<const Criterion> made = loss.make();
  const auto function = [made, target](const at::Tensor& output, const Batch& batch) {
    return made->mean(output, batch[target], target);
  };
  return {function, std::move(target), {}};
}

Loss mse(std::string target) {
  const auto function = [target](const at::Tensor& output, const Batch& batch) {
    const at::Tensor& wanted = batch[target];
    if (output.sizes() != wanted.sizes()) {
      throw ShapeError(c10::str(
          "mse: the output is ", output.sizes(), ", \"", target, "\" is ", wanted.sizes()));
    }
    return at::mse_loss(output, wanted);
  };
  MeanSquaredError::Options error;
  error.target = target;
  return {function, std::move(target), {use<MeanSquaredError>(error)}};
}

Factory<Model> detail::from_module(std::function<TensorModule()> make,
                                   std::string input,
                                   Loss loss) {
  auto build = [make = std::move(make), input = std::move(input), loss = std::move(loss)] {
    return std::make_unique<FunctionModel>(make(), input, loss);
  };
  return Factory<Model>("from_module", typeid(FunctionModel), nullptr, std::move(build));
}

}  // namespace rondo
