#include "optim/sgd.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/library.h>

#include <algorithm>

#include "core/error.h"
#include "core/prepared_operator.h"
#include "optim/internal/number_rules.h"
#include "optim/internal/param_lists.h"
#include "optim/internal/update_operators.h"
#include "optim/internal/update_parts.h"
#include "optim/operators.h"
#include "optim/param_group_option.h"
#include "optim/register.h"

namespace rondo {

namespace {

using namespace detail;  // NOLINT: rondo's own

struct SgdUpdate {
  double lr = 0.0;
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;
};

template <class T>
SgdNumbers<T> rounded(const SgdUpdate& by) {
  SgdNumbers<T> numbers;
  numbers.minus_lr = static_cast<T>(-by.lr);
  numbers.weight_decay = static_cast<T>(by.weight_decay);
  numbers.momentum = static_cast<T>(by.momentum);
  numbers.one_minus_dampening = static_cast<T>(1 - by.dampening);
  numbers.is_nesterov = by.nesterov;
  numbers.is_first = false;
  return numbers;
}

/// Any dtype, strides and device: as torch::optim::SGD does it.
void update_by_operators(const SgdUpdate& by,
                         const at::Tensor& param,
                         const at::Tensor& grad,
                         const at::Tensor& grad_scale,
                         const at::Tensor& buffer,
                         bool is_first) {
  const at::NoGradGuard no_grad;
  scale_by_operator(grad, grad_scale);
  at::Tensor step = by.weight_decay != 0 ? grad.add(param, by.weight_decay) : grad;
  if (buffer.defined()) {
    if (is_first) {
      buffer.copy_(step);
    } else {
      buffer.mul_(by.momentum).add_(step, 1 - by.dampening);
    }
    step = by.nesterov ? step.add(buffer, by.momentum) : buffer;
  }
  param.add_(step, -by.lr);
}

/// The operator with its arguments: what is found out about them is found out once.
class SgdCall {
 public:
  struct Lists {
    std::vector<at::Tensor> params;
    std::vector<at::Tensor> grads;
    std::vector<at::Tensor> momentum_buffers;
    std::vector<at::Tensor> steps;
  };

  struct NumberTensors {
    at::Tensor lr;
    at::Tensor momentum;
    at::Tensor dampening;
    at::Tensor weight_decay;
  };

  /// \param grad_scale  what gradients are multiplied by first; undefined for nothing
  SgdCall(Lists lists, NumberTensors numbers, bool nesterov, at::Tensor grad_scale = {})
      : lists_(std::move(lists)),
        numbers_(std::move(numbers)),
        nesterov_(nesterov),
        grad_scale_(std::move(grad_scale)) {
    const size_t count = lists_.params.size();
    TORCH_CHECK(lists_.grads.size() == count,
                "rondo::sgd_: expected a gradient for each parameter");
    TORCH_CHECK(lists_.steps.size() == lists_.momentum_buffers.size() &&
                    (lists_.steps.empty() || lists_.steps.size() == count),
                "rondo::sgd_: expected a momentum buffer and a step for each parameter, or none");
    lists_.momentum_buffers.resize(count);
    is_first_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      const at::Tensor& param = lists_.params[i];
      kinds_.add(i,
                 param,
                 is_flat(param, {&lists_.grads[i], &lists_.momentum_buffers[i]}) &&
                     is_number_like(grad_scale_, param));
    }
  }

  void operator()() {
    const SgdUpdate by{number_in(numbers_.lr),
                       number_in(numbers_.momentum),
                       number_in(numbers_.dampening),
                       number_in(numbers_.weight_decay),
                       nesterov_};
    const bool has_momentum = by.momentum != 0;
    if (has_momentum && lists_.steps.empty() && !lists_.params.empty()) {
      throw UsageError(
          "SGD was built with momentum = 0 and keeps no buffers for it; "
          "give it a momentum > 0 to begin with");
    }
    for (size_t i = 0; i < lists_.params.size(); ++i) {
      is_first_[i] = has_momentum && number_in(lists_.steps[i])++ == 0;
    }
    update<float>(by, kinds_.floats);
    update<double>(by, kinds_.doubles);
    for (const size_t i : kinds_.others) {
      update_by_operators(by,
                          lists_.params[i],
                          lists_.grads[i],
                          grad_scale_,
                          has_momentum ? lists_.momentum_buffers[i] : at::Tensor(),
                          is_first_[i]);
    }
  }

 private:
  template <class T>
  void update(const SgdUpdate& by, const UpdateParts& parts) const {
    const SgdNumbers<T> of_all = rounded<T>(by);
    const auto update_part = [&](size_t i, int64_t from, int64_t to) {
      SgdNumbers<T> numbers = of_all;
      numbers.is_first = is_first_[i];
      const SgdTensors<T> part = {
          lists_.params[i].data_ptr<T>() + from,
          lists_.grads[i].data_ptr<T>() + from,
          by.momentum != 0 ? lists_.momentum_buffers[i].data_ptr<T>() + from : nullptr};
      sgd_loop<T>(numbers, part, to - from, widest_instruction_set());
    };
    update_flat<T>(parts, lists_.params, lists_.grads, grad_scale_, update_part);
  }

  Lists lists_;
  NumberTensors numbers_;
  bool nesterov_;
  at::Tensor grad_scale_;
  UpdateKinds kinds_;
  std::vector<char> is_first_;  // of a momentum; kept, so that an update allocates nothing
};

void sgd_(at::TensorList params,
          at::TensorList grads,
          at::TensorList momentum_buffers,
          at::TensorList steps,
          const at::Tensor& lr,
          const at::Tensor& momentum,
          const at::Tensor& dampening,
          const at::Tensor& weight_decay,
          bool nesterov) {
  SgdCall({params.vec(), grads.vec(), momentum_buffers.vec(), steps.vec()},
          {lr, momentum, dampening, weight_decay},
          nesterov)();
}

PreparedCall prepare_sgd(const std::vector<c10::IValue>& arguments) {
  return SgdCall({arguments[0].toTensorVector(),
                  arguments[1].toTensorVector(),
                  arguments[2].toTensorVector(),
                  arguments[3].toTensorVector()},
                 {arguments[4].toTensor(),
                  arguments[5].toTensor(),
                  arguments[6].toTensor(),
                  arguments[7].toTensor()},
                 arguments[8].toBool(),
                 arguments.size() > 9 ? arguments[9].toTensor() : at::Tensor());
}

Optimizer::Numbers numbers_of(const Sgd::Options& options) {
  return {{"lr", options.lr},
          {"momentum", options.momentum},
          {"dampening", options.dampening},
          {"weight_decay", options.weight_decay}};
}

/// Momentum is a matter of any group that speaks of it.
bool has_momentum(const Sgd::Options& options) {
  const auto sets_momentum = [](const ParamGroupOptions& group) {
    return std::any_of(group.numbers.begin(), group.numbers.end(), [](const auto& number) {
      return number.first == "momentum";
    });
  };
  return options.momentum != 0 ||
         std::any_of(options.params.begin(), options.params.end(), sets_momentum);
}

using Names = std::vector<std::string>;

}  // namespace

void detail::define_sgd_operator(torch::Library& library) {
  library.def(
      "sgd_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] momentum_buffers, "
      "Tensor(c!)[] steps, Tensor lr, Tensor momentum, Tensor dampening, Tensor weight_decay, "
      "bool nesterov) -> ()");
  library.impl("sgd_",
               torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(sgd_)));
  register_prepared_operator("rondo::sgd_", prepare_sgd);
  library.def(
      "sgd_.scaled(Tensor(a!)[] params, Tensor(d!)[] grads, Tensor(b!)[] momentum_buffers, "
      "Tensor(c!)[] steps, Tensor lr, Tensor momentum, Tensor dampening, Tensor weight_decay, "
      "bool nesterov, Tensor grad_scale) -> ()");
  library.impl("sgd_.scaled",
               torch::dispatch(
                   c10::DispatchKey::CompositeExplicitAutograd,
                   torch::CppFunction::makeFromBoxedFunction<&prepare_and_call<&prepare_sgd>>()));
  register_prepared_operator("rondo::sgd_.scaled", prepare_sgd);
}

Sgd::Sgd(const Options& options)
    : Optimizer(numbers_of(options),
                has_momentum(options) ? Names{"momentum_buffer"} : Names{},
                options.params,
                has_momentum(options) ? Names{"step"} : Names{}),
      has_momentum_(has_momentum(options)),
      nesterov_(options.nesterov) {
  check_numbers("SGD", numbers_of(options), options.params);
  if (nesterov_ && (options.momentum <= 0 || options.dampening != 0)) {
    throw UsageError(fmt::format(
        "SGD: nesterov needs momentum > 0 and dampening = 0, got momentum = {}, dampening = {}",
        options.momentum,
        options.dampening));
  }
  register_optimizer_operators();
}

void Sgd::update(ParamGroup& group) {
  const ParamLists chosen(group);
  if (chosen.empty()) {
    return;
  }
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("rondo::sgd_", "").typed<decltype(sgd_)>();
  op.call(chosen.values(),
          chosen.grads(),
          has_momentum_ ? chosen.states("momentum_buffer") : std::vector<at::Tensor>(),
          has_momentum_ ? chosen.states("step") : std::vector<at::Tensor>(),
          group["lr"],
          group["momentum"],
          group["dampening"],
          group["weight_decay"],
          nesterov_);
}

void register_sgd(Registry<Optimizer>& registry) {
  using Options = Sgd::Options;
  registry.add<Sgd>("SGD", "Stochastic gradient descent, with momentum.")
      .key("lr", &Options::lr, at_least(0), "step size")
      .key("momentum", &Options::momentum, at_least(0), "share of the last step that is kept")
      .key("dampening",
           &Options::dampening,
           between(0, 1),
           "share of the gradient that momentum leaves out")
      .key("weight_decay", &Options::weight_decay, at_least(0), "L2 penalty, added to the gradient")
      .key("nesterov", &Options::nesterov, "look ahead along the momentum")
      .key_of("params",
              &Options::params,
              ParamGroupListOption({"lr", "momentum", "dampening", "weight_decay"}),
              "parameters with their own numbers");
}

}  // namespace rondo
