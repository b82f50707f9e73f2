#include "optim/adam.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/maximum.h>
#include <torch/library.h>

#include <cmath>

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

struct AdamUpdate {
  double lr = 0.0;
  double beta1 = 0.0;
  double beta2 = 0.0;
  double eps = 0.0;
  double weight_decay = 0.0;
  bool is_decoupled = false;
  double step = 0.0;                   ///< that of the corrections below
  double step_size = 0.0;              ///< lr / (1 - beta1^step)
  double sqrt_bias_correction2 = 0.0;  ///< sqrt(1 - beta2^step)

  /// Parameters that were always updated together share a count: the powers are computed once.
  void set_step(double count) {
    if (count != step) {
      step = count;
      step_size = lr / (1 - std::pow(beta1, count));
      sqrt_bias_correction2 = std::sqrt(1 - std::pow(beta2, count));
    }
  }

  bool shrinks() const { return is_decoupled && weight_decay != 0; }

  bool adds_decay() const { return !is_decoupled && weight_decay != 0; }

  double shrink() const { return 1 - lr * weight_decay; }
};

struct AdamState {
  const at::Tensor& exp_avg;
  const at::Tensor& exp_avg_sq;
  const at::Tensor& max_exp_avg_sq;  ///< undefined without AMSGrad
};

template <class T>
AdamNumbers<T> rounded(const AdamUpdate& by) {
  AdamNumbers<T> numbers;
  numbers.shrink = static_cast<T>(by.shrinks() ? by.shrink() : 1.0);
  numbers.weight_decay = static_cast<T>(by.adds_decay() ? by.weight_decay : 0.0);
  numbers.beta1 = static_cast<T>(by.beta1);
  numbers.one_minus_beta1 = static_cast<T>(1 - by.beta1);
  numbers.beta2 = static_cast<T>(by.beta2);
  numbers.one_minus_beta2 = static_cast<T>(1 - by.beta2);
  numbers.sqrt_bias_correction2 = static_cast<T>(by.sqrt_bias_correction2);
  numbers.eps = static_cast<T>(by.eps);
  numbers.minus_step_size = static_cast<T>(-by.step_size);
  return numbers;
}

/// Any dtype, strides and device: as torch::optim::Adam and AdamW do it.
void update_by_operators(const AdamUpdate& by,
                         const at::Tensor& param,
                         at::Tensor grad,
                         const at::Tensor& grad_scale,
                         const AdamState& state) {
  const at::NoGradGuard no_grad;
  scale_by_operator(grad, grad_scale);
  if (by.shrinks()) {
    param.mul_(by.shrink());
  }
  if (by.adds_decay()) {
    grad = grad.add(param, by.weight_decay);
  }
  state.exp_avg.mul_(by.beta1).add_(grad, 1 - by.beta1);
  state.exp_avg_sq.mul_(by.beta2).addcmul_(grad, grad, 1 - by.beta2);
  at::Tensor second_moment = state.exp_avg_sq;
  if (state.max_exp_avg_sq.defined()) {
    second_moment = state.max_exp_avg_sq;
    second_moment.copy_(at::maximum(state.exp_avg_sq, second_moment));
  }
  const at::Tensor denominator = second_moment.sqrt().div(by.sqrt_bias_correction2).add_(by.eps);
  param.addcdiv_(state.exp_avg, denominator, -by.step_size);
}

/// The operator with its arguments: what is found out about them is found out once.
class AdamCall {
 public:
  struct Lists {
    std::vector<at::Tensor> params;
    std::vector<at::Tensor> grads;
    std::vector<at::Tensor> exp_avgs;
    std::vector<at::Tensor> exp_avg_sqs;
    std::vector<at::Tensor> max_exp_avg_sqs;
    std::vector<at::Tensor> steps;
  };

  struct NumberTensors {
    at::Tensor lr;
    at::Tensor beta1;
    at::Tensor beta2;
    at::Tensor eps;
    at::Tensor weight_decay;
  };

  /// \param grad_scale  what gradients are multiplied by first; undefined for nothing
  AdamCall(Lists lists, NumberTensors numbers, bool is_decoupled, at::Tensor grad_scale = {})
      : lists_(std::move(lists)),
        numbers_(std::move(numbers)),
        is_decoupled_(is_decoupled),
        grad_scale_(std::move(grad_scale)) {
    const size_t count = lists_.params.size();
    TORCH_CHECK(lists_.grads.size() == count && lists_.exp_avgs.size() == count &&
                    lists_.exp_avg_sqs.size() == count && lists_.steps.size() == count &&
                    (lists_.max_exp_avg_sqs.empty() || lists_.max_exp_avg_sqs.size() == count),
                "rondo::adam_: expected lists of one length");
    lists_.max_exp_avg_sqs.resize(count);
    updates_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      const at::Tensor& param = lists_.params[i];
      kinds_.add(i,
                 param,
                 is_flat(param,
                         {&lists_.grads[i],
                          &lists_.exp_avgs[i],
                          &lists_.exp_avg_sqs[i],
                          &lists_.max_exp_avg_sqs[i]}) &&
                     is_number_like(grad_scale_, param));
    }
  }

  void operator()() {
    AdamUpdate by;
    by.lr = number_in(numbers_.lr);
    by.beta1 = number_in(numbers_.beta1);
    by.beta2 = number_in(numbers_.beta2);
    by.eps = number_in(numbers_.eps);
    by.weight_decay = number_in(numbers_.weight_decay);
    by.is_decoupled = is_decoupled_;
    for (size_t i = 0; i < lists_.params.size(); ++i) {
      by.set_step(++number_in(lists_.steps[i]));
      updates_[i] = by;
    }
    update<float>(kinds_.floats);
    update<double>(kinds_.doubles);
    for (const size_t i : kinds_.others) {
      update_by_operators(updates_[i],
                          lists_.params[i],
                          lists_.grads[i],
                          grad_scale_,
                          {lists_.exp_avgs[i], lists_.exp_avg_sqs[i], lists_.max_exp_avg_sqs[i]});
    }
  }

 private:
  template <class T>
  void update(const UpdateParts& parts) const {
    const auto update_part = [&](size_t i, int64_t from, int64_t to) {
      const at::Tensor& largest = lists_.max_exp_avg_sqs[i];
      const AdamTensors<T> part = {lists_.params[i].data_ptr<T>() + from,
                                   lists_.grads[i].data_ptr<T>() + from,
                                   lists_.exp_avgs[i].data_ptr<T>() + from,
                                   lists_.exp_avg_sqs[i].data_ptr<T>() + from,
                                   largest.defined() ? largest.data_ptr<T>() + from : nullptr};
      adam_loop<T>(rounded<T>(updates_[i]), part, to - from, widest_instruction_set());
    };
    update_flat<T>(parts, lists_.params, lists_.grads, grad_scale_, update_part);
  }

  Lists lists_;
  NumberTensors numbers_;
  bool is_decoupled_;
  at::Tensor grad_scale_;
  UpdateKinds kinds_;
  std::vector<AdamUpdate> updates_;  // one a tensor; kept, so that an update allocates nothing
};

void adam_(at::TensorList params,
           at::TensorList grads,
           at::TensorList exp_avgs,
           at::TensorList exp_avg_sqs,
           at::TensorList max_exp_avg_sqs,
           at::TensorList steps,
           const at::Tensor& lr,
           const at::Tensor& beta1,
           const at::Tensor& beta2,
           const at::Tensor& eps,
           const at::Tensor& weight_decay,
           bool decoupled_weight_decay) {
  AdamCall({params.vec(),
            grads.vec(),
            exp_avgs.vec(),
            exp_avg_sqs.vec(),
            max_exp_avg_sqs.vec(),
            steps.vec()},
           {lr, beta1, beta2, eps, weight_decay},
           decoupled_weight_decay)();
}

PreparedCall prepare_adam(const std::vector<c10::IValue>& arguments) {
  return AdamCall({arguments[0].toTensorVector(),
                   arguments[1].toTensorVector(),
                   arguments[2].toTensorVector(),
                   arguments[3].toTensorVector(),
                   arguments[4].toTensorVector(),
                   arguments[5].toTensorVector()},
                  {arguments[6].toTensor(),
                   arguments[7].toTensor(),
                   arguments[8].toTensor(),
                   arguments[9].toTensor(),
                   arguments[10].toTensor()},
                  arguments[11].toBool(),
                  arguments.size() > 12 ? arguments[12].toTensor() : at::Tensor());
}

template <class Options>
Optimizer::Numbers numbers_of(const Options& options) {
  return {{"lr", options.lr},
          {"beta1", options.betas[0]},
          {"beta2", options.betas[1]},
          {"eps", options.eps},
          {"weight_decay", options.weight_decay}};
}

std::vector<std::string> states_of(bool amsgrad) {
  return amsgrad ? std::vector<std::string>{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}
                 : std::vector<std::string>{"exp_avg", "exp_avg_sq"};
}

void update_group(ParamGroup& group, bool amsgrad, bool is_decoupled) {
  const ParamLists chosen(group);
  if (chosen.empty()) {
    return;
  }
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("rondo::adam_", "").typed<decltype(adam_)>();
  op.call(chosen.values(),
          chosen.grads(),
          chosen.states("exp_avg"),
          chosen.states("exp_avg_sq"),
          amsgrad ? chosen.states("max_exp_avg_sq") : std::vector<at::Tensor>(),
          chosen.states("step"),
          group["lr"],
          group["beta1"],
          group["beta2"],
          group["eps"],
          group["weight_decay"],
          is_decoupled);
}

/// `betas = [0.9, 0.999]`
struct BetasOption {
  using Betas = std::array<double, 2>;

  static std::string name() { return "a list of two numbers in [0, 1)"; }

  static std::optional<Betas> read(const ConfigValue& value, FaultSink& faults) {
    const auto* array = value.get_if<ConfigArray>();
    if (array == nullptr || array->size() != 2) {
      return mismatch(value, name(), faults);
    }
    const auto beta1 = read_number(array->front(), faults);
    const auto beta2 = read_number(array->back(), faults);
    if (!beta1 || !beta2) {
      return std::nullopt;
    }
    const Betas betas = {*beta1, *beta2};
    const bool is_valid = betas[0] >= 0 && betas[0] < 1 && betas[1] >= 0 && betas[1] < 1;
    return is_valid ? std::optional<Betas>(betas) : mismatch(value, name(), faults);
  }

  static ConfigValue write(const Betas& betas) {
    return ConfigValue(ConfigArray{ConfigValue(betas[0]), ConfigValue(betas[1])});
  }
};

template <class T>
void register_as(Registry<Optimizer>& registry,
                 const char* name,
                 const char* doc,
                 const char* decay) {
  using Options = typename T::Options;
  registry.add<T>(name, doc)
      .key("lr", &Options::lr, at_least(0), "step size")
      .key_of("betas", &Options::betas, BetasOption(), "decay rates of the two moments")
      .key("eps", &Options::eps, at_least(0), "added to the denominator")
      .key("weight_decay", &Options::weight_decay, at_least(0), decay)
      .key("amsgrad", &Options::amsgrad, "divide by the largest second moment so far")
      .key_of("params",
              &Options::params,
              ParamGroupListOption({"lr", "beta1", "beta2", "eps", "weight_decay"}),
              "parameters with their own numbers");
}

}  // namespace

void detail::define_adam_operator(torch::Library& library) {
  library.def(
      "adam_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_avg_sqs, "
      "Tensor(d!)[] max_exp_avg_sqs, Tensor(e!)[] steps, Tensor lr, Tensor beta1, Tensor beta2, "
      "Tensor eps, Tensor weight_decay, bool decoupled_weight_decay) -> ()");
  library.impl("adam_",
               torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, TORCH_FN(adam_)));
  register_prepared_operator("rondo::adam_", prepare_adam);
  library.def(
      "adam_.scaled(Tensor(a!)[] params, Tensor(f!)[] grads, Tensor(b!)[] exp_avgs, "
      "Tensor(c!)[] exp_avg_sqs, Tensor(d!)[] max_exp_avg_sqs, Tensor(e!)[] steps, Tensor lr, "
      "Tensor beta1, Tensor beta2, Tensor eps, Tensor weight_decay, bool decoupled_weight_decay, "
      "Tensor grad_scale) -> ()");
  library.impl("adam_.scaled",
               torch::dispatch(
                   c10::DispatchKey::CompositeExplicitAutograd,
                   torch::CppFunction::makeFromBoxedFunction<&prepare_and_call<&prepare_adam>>()));
  register_prepared_operator("rondo::adam_.scaled", prepare_adam);
}

Adam::Adam(const Options& options)
    : Optimizer(numbers_of(options), states_of(options.amsgrad), options.params, {"step"}),
      amsgrad_(options.amsgrad) {
  check_numbers("Adam", numbers_of(options), options.params);
  register_optimizer_operators();
}

void Adam::update(ParamGroup& group) {
  update_group(group, amsgrad_, /*is_decoupled=*/false);
}

AdamW::AdamW(const Options& options)
    : Optimizer(numbers_of(options), states_of(options.amsgrad), options.params, {"step"}),
      amsgrad_(options.amsgrad) {
  check_numbers("AdamW", numbers_of(options), options.params);
  register_optimizer_operators();
}

void AdamW::update(ParamGroup& group) {
  update_group(group, amsgrad_, /*is_decoupled=*/true);
}

void register_adam(Registry<Optimizer>& registry) {
  register_as<Adam>(registry,
                    "Adam",
                    "Adaptive moments; weight decay goes through them.",
                    "L2 penalty, added to the gradient");
}

void register_adam_w(Registry<Optimizer>& registry) {
  register_as<AdamW>(registry,
                     "AdamW",
                     "Adaptive moments with decoupled weight decay.",
                     "share of lr by which each weight shrinks at an update");
}

}  // namespace rondo
