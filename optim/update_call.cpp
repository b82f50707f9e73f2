#include "optim/internal/update_call.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <utility>

namespace rondo::detail {

namespace {

constexpr size_t kMostTensors = 8;  // of a parameter: itself, its gradient, its states

/// The value of a 0-dim float64 tensor on the CPU, reached where the dispatcher does not see it.
double& number_in(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.dim() == 0 && tensor.is_cpu() && tensor.scalar_type() == at::kDouble,
              "expected a 0-dim float64 tensor on the CPU, got ",
              tensor.toString(),
              tensor.sizes());
  return *tensor.data_ptr<double>();
}

bool same_order(const at::Tensor& a, const at::Tensor& b) {
  for (int64_t d = 0; d < a.dim(); ++d) {
    if (a.size(d) != 1 && a.stride(d) != b.stride(d)) {
      return false;
    }
  }
  return true;
}

/// True when the tensors can be walked as flat arrays side by side: on the CPU, float32 or float64,
/// dense, one shape, dtype and order of elements.
bool is_flat(const std::vector<at::Tensor>& tensors) {
  const at::Tensor& param = tensors.front();
  const at::ScalarType dtype = param.scalar_type();
  return param.is_cpu() && (dtype == at::kFloat || dtype == at::kDouble) &&
         param.is_non_overlapping_and_dense() &&
         std::all_of(tensors.begin() + 1, tensors.end(), [&](const at::Tensor& other) {
           return other.scalar_type() == dtype && other.sizes() == param.sizes() &&
                  same_order(param, other);
         });
}

/// Whether a scale of gradients is one number on the CPU, of the parameter's dtype, or undefined.
bool is_number_like(const at::Tensor& scale, const at::Tensor& param) {
  return !scale.defined() ||
         (scale.numel() == 1 && scale.is_cpu() && scale.scalar_type() == param.scalar_type());
}

}  // namespace

UpdateCall::UpdateCall(const CompiledRule& rule, UpdateArguments arguments)
    : rule_(rule), all_(std::move(arguments)) {
  const size_t count = all_.params.size();
  TORCH_CHECK(all_.grads.size() == count && all_.states.size() == count * rule_.states.size() &&
                  all_.counters.size() == count * rule_.counters.size(),
              "expected a gradient, ",
              rule_.states.size(),
              " states and ",
              rule_.counters.size(),
              " counters for each parameter");
  TORCH_CHECK(all_.numbers.size() == rule_.given, "expected ", rule_.given, " numbers");
  const auto is_on_cpu = [](const at::Tensor& tensor) { return tensor.is_cpu(); };
  is_on_host_ = std::all_of(all_.numbers.begin(), all_.numbers.end(), is_on_cpu) &&
                std::all_of(all_.params.begin(), all_.params.end(), is_on_cpu);
  given_.resize(rule_.given);
  counters_.resize(all_.counters.size());
  derived_.resize(count * rule_.derived);
  for (size_t i = 0; i < count; ++i) {
    const std::vector<at::Tensor> tensors = tensors_of(i);
    TORCH_CHECK(tensors.size() <= kMostTensors, "a rule has at most ", kMostTensors - 2, " states");
    kinds_.add(i,
               tensors.front(),
               is_on_host_ && is_flat(tensors) && is_number_like(all_.grad_scale, tensors.front()));
  }
}

void UpdateCall::operator()() {
  if (!is_on_host_) {
    update_on_devices();
    return;
  }
  if (is_skipped()) {
    scale_gradients();
    return;
  }
  derive();
  update_elements<float>(kinds_.floats, rule_.update_floats);
  update_elements<double>(kinds_.doubles, rule_.update_doubles);
  for (const size_t i : kinds_.others) {
    update_tensors(i);
  }
}

bool UpdateCall::is_skipped() const {
  if (!all_.skip.defined()) {
    return false;
  }
  return all_.skip.is_cpu() ? *all_.skip.data_ptr<bool>() : all_.skip.item<bool>();
}

// As clipping does, which does not know of a skipped update.
void UpdateCall::scale_gradients() const {
  const at::NoGradGuard no_grad;
  if (all_.grad_scale.defined()) {
    for (const at::Tensor& grad : all_.grads) {
      grad.mul_(all_.grad_scale);
    }
  }
}

at::Tensor UpdateCall::unless_skipped(const at::Tensor& fresh, const at::Tensor& old) const {
  return all_.skip.defined() ? at::where(all_.skip.to(old.device()), old, fresh) : fresh;
}

// Parameters that were always updated together have the same counts: the numbers of the one before
// are taken then, so that powers and roots are computed once. Counters move on once all is well.
void UpdateCall::derive() {
  for (size_t i = 0; i < given_.size(); ++i) {
    given_[i] = number_in(all_.numbers[i]);
  }
  for (size_t i = 0; i < counters_.size(); ++i) {
    counters_[i] = number_in(all_.counters[i]);
  }
  const size_t counters = rule_.counters.size();
  next_counters_ = counters_;
  for (size_t i = 0; i < all_.params.size(); ++i) {
    const double* const before = counters_.data() + i * counters;
    double* const next = next_counters_.data() + i * counters;
    double* const derived = derived_.data() + i * rule_.derived;
    if (i > 0 && std::equal(before, before + counters, before - counters)) {
      std::copy_n(next - counters, counters, next);
      std::copy_n(derived - rule_.derived, rule_.derived, derived);
    } else {
      rule_.derive(given_.data(), next, derived);
    }
  }
  for (size_t i = 0; i < counters_.size(); ++i) {
    number_in(all_.counters[i]) = next_counters_[i];
  }
}

template <class T>
void UpdateCall::update_elements(
    const UpdateParts& parts,
    void (*update)(const double*, T* const*, int64_t, InstructionSet)) const {
  const size_t states = rule_.states.size();
  const auto update_part = [&](size_t i, int64_t from, int64_t to) {
    T* tensors[kMostTensors] = {all_.params[i].data_ptr<T>() + from,
                                all_.grads[i].data_ptr<T>() + from};
    for (size_t s = 0; s < states; ++s) {
      tensors[2 + s] = all_.states[i * states + s].data_ptr<T>() + from;
    }
    update(derived_.data() + i * rule_.derived, tensors, to - from, widest_instruction_set());
  };
  update_flat<T>(parts, all_.params, all_.grads, all_.grad_scale, update_part);
}

std::vector<at::Tensor> UpdateCall::tensors_of(size_t i) const {
  std::vector<at::Tensor> tensors = {all_.params[i], all_.grads[i]};
  const auto first = all_.states.begin() + static_cast<std::ptrdiff_t>(i * rule_.states.size());
  tensors.insert(tensors.end(), first, first + static_cast<std::ptrdiff_t>(rule_.states.size()));
  return tensors;
}

void UpdateCall::update_tensors(size_t i) {
  const at::NoGradGuard no_grad;
  if (all_.grad_scale.defined()) {
    all_.grads[i].mul_(all_.grad_scale);
  }
  put(i, rule_.update_tensors(derived_.data() + i * rule_.derived, tensors_of(i)));
}

std::vector<at::Tensor> UpdateCall::numbers_on_device() const {
  std::vector<at::Tensor> numbers;
  for (const at::Tensor& number : all_.numbers) {
    numbers.push_back(all_.params.empty() ? number : number.to(all_.params.front().device()));
  }
  return numbers;
}

void UpdateCall::update_on_devices() {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> numbers = numbers_on_device();
  const size_t counters = rule_.counters.size();
  for (size_t i = 0; i < all_.params.size(); ++i) {
    if (all_.grad_scale.defined()) {
      all_.grads[i].mul_(all_.grad_scale);
    }
    const auto first = all_.counters.begin() + static_cast<std::ptrdiff_t>(i * counters);
    std::vector<at::Tensor> counts(first, first + static_cast<std::ptrdiff_t>(counters));
    const std::vector<at::Tensor> old = tensors_of(i);
    std::vector<at::Tensor> fresh = rule_.update_on_device(numbers, counts, old);
    for (size_t v = 0; v < fresh.size(); ++v) {
      fresh[v] = unless_skipped(fresh[v], old[v == 0 ? 0 : v + 1]);  // between them is the gradient
    }
    put(i, fresh);
    for (size_t c = 0; c < counters; ++c) {
      at::Tensor& counter = all_.counters[i * counters + c];
      counter.copy_(unless_skipped(counts[c], counter));
    }
  }
}

void UpdateCall::put(size_t i, const std::vector<at::Tensor>& values) {
  all_.params[i].copy_(values[0]);
  for (size_t s = 0; s < rule_.states.size(); ++s) {
    all_.states[i * rule_.states.size() + s].copy_(values[1 + s]);
  }
}

}  // namespace rondo::detail
