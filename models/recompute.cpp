#include "models/recompute.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/alias.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/library.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/forward_context.h"
#include "core/operator_facts.h"
#include "core/torch_compat.h"

namespace rondo {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kBytesOfState = 5056;  // of the CPU's generator

/// The same tensor, under another name: passes must not take what is computed from it for what the
/// first run computed already.
at::Tensor again(const at::Tensor& x) {
  return at::alias(x);
}

/// Gives the CPU's generator another state, and keeps its own in `state`.
/// \param state  uint8
void swap_random(const at::Tensor& state, bool only_keeps) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  const at::Tensor own = generator.get_state();
  if (!only_keeps) {
    generator.set_state(state.clone());
  }
  state.copy_(own);
}

void define_operators() {
  static const bool done = [] {
    static torch::Library library(
        torch::Library::FRAGMENT, "rondo", c10::nullopt, __FILE__, __LINE__);
    const auto define = [](const char* schema, OperatorFacts::Effects effects, auto* function) {
      OperatorFacts facts;
      facts.schema = schema;
      facts.effects = effects;
      library.def(schema);
      library.impl(facts.name().c_str(),
                   torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, function));
      register_operator_facts(std::move(facts));
    };
    define("rondo::again(Tensor(a) x) -> Tensor(a)", OperatorFacts::Effects::OfSchema, &again);
    define("rondo::swap_random(Tensor(a!) state, bool only_keeps) -> ()",
           OperatorFacts::Effects::Opaque,
           &swap_random);
    return true;
  }();
  static_cast<void>(done);
}

at::Tensor call_again(const at::Tensor& x) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("rondo::again", "")
                             .typed<at::Tensor(const at::Tensor&)>();
  return op.call(x);
}

void call_swap_random(const at::Tensor& state, bool only_keeps) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("rondo::swap_random", "")
                             .typed<void(const at::Tensor&, bool)>();
  op.call(state, only_keeps);
}

/// Autocast as it was, for forwards that no Trainer runs.
class AutocastAsBefore {
 public:
  AutocastAsBefore(c10::DeviceType device, bool on, at::ScalarType dtype)
      : device_(device),
        was_on_(compat::autocast_enabled(device)),
        dtype_before_(compat::autocast_dtype(device)) {
    compat::set_autocast(device, on);
    compat::set_autocast_dtype(device, dtype);
  }

  AutocastAsBefore(const AutocastAsBefore&) = delete;
  AutocastAsBefore& operator=(const AutocastAsBefore&) = delete;

  ~AutocastAsBefore() {
    compat::set_autocast(device_, was_on_);
    compat::set_autocast_dtype(device_, dtype_before_);
  }

 private:
  c10::DeviceType device_;
  bool was_on_;
  at::ScalarType dtype_before_;
};

/// Casts of weights that autocast keeps belong to one graph of gradients: the first run has none,
/// and the second one's is gone after its gradient.
class OwnCasts {
 public:
  OwnCasts() { at::autocast::clear_cache(); }

  OwnCasts(const OwnCasts&) = delete;
  OwnCasts& operator=(const OwnCasts&) = delete;

  ~OwnCasts() { at::autocast::clear_cache(); }
};

/// \throws UsageError  when gradients would flow to a tensor that is not among `tensors`
void require_known_leaves(const at::Tensor& result, const variable_list& tensors) {
  std::unordered_set<const void*> known;
  for (const at::Tensor& tensor : tensors) {
    known.insert(tensor.unsafeGetTensorImpl());
  }
  std::unordered_set<const torch::autograd::Node*> seen;
  std::vector<const torch::autograd::Node*> open = {result.grad_fn().get()};
  while (!open.empty()) {
    const torch::autograd::Node* const node = open.back();
    open.pop_back();
    if (node == nullptr || !seen.insert(node).second) {
      continue;
    }
    const auto* const leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(node);
    if (leaf != nullptr && known.count(leaf->variable.unsafeGetTensorImpl()) == 0) {
      throw UsageError(
          fmt::format("recompute: the part uses a parameter, {} of {}, that its module does not "
                      "own, so it would get no gradient: pass a module that owns it",
                      c10::str(leaf->variable.sizes()),
                      c10::toString(leaf->variable.scalar_type())));
    }
    for (const torch::autograd::Edge& edge : node->next_edges()) {
      open.push_back(edge.function.get());
    }
  }
}

/// While it lives, the generator goes on from another state.
class RandomAsBefore {
 public:
  explicit RandomAsBefore(const at::Tensor& state) : state_(state.clone()) {
    call_swap_random(state_, /*only_keeps=*/false);
  }

  RandomAsBefore(const RandomAsBefore&) = delete;
  RandomAsBefore& operator=(const RandomAsBefore&) = delete;

  ~RandomAsBefore() { call_swap_random(state_, /*only_keeps=*/false); }

 private:
  at::Tensor state_;  // the generator's own meanwhile
};

/// Leaves the buffers of a module as it found them. It has to outlive the gradient, which checks
/// that the buffers its forward has seen are as they were.
class BuffersAsBefore {
 public:
  explicit BuffersAsBefore(const torch::nn::Module& module) : buffers_(module.buffers()) {
    for (const at::Tensor& buffer : buffers_) {
      before_.push_back(buffer.clone());
    }
  }

  BuffersAsBefore(const BuffersAsBefore&) = delete;
  BuffersAsBefore& operator=(const BuffersAsBefore&) = delete;

  ~BuffersAsBefore() {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      buffers_[i].copy_(before_[i]);
    }
  }

 private:
  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> before_;
};

/// A part of a forward, from its first run to the gradient of the second.
class Part {
 public:
  Part(torch::nn::Module& module,
       std::function<at::Tensor(const std::vector<at::Tensor>&)> forward,
       size_t inputs)
      : module_(module),
        forward_(std::move(forward)),
        inputs_(inputs),
        reopen_(ForwardContext::current()),
        has_autocast_(compat::autocast_enabled(at::kCPU)),
        autocast_dtype_(compat::autocast_dtype(at::kCPU)),
        random_(at::empty({kBytesOfState}, at::kByte)) {
    call_swap_random(random_, /*only_keeps=*/true);
  }

  /// Without gradients.
  at::Tensor run(const variable_list& tensors) const {
    const OwnCasts casts;
    return compute(tensors);
  }

  /// \param tensors  inputs and parameters
  variable_list gradients(const variable_list& tensors, const at::Tensor& of_result) const {
    variable_list taken = tensors;
    for (size_t i = 0; i < inputs_; ++i) {
      taken[i] = call_again(tensors[i].detach()).set_requires_grad(tensors[i].requires_grad());
    }
    const BuffersAsBefore buffers(module_);
    const at::Tensor result = run_again(taken);
    require_known_leaves(result, taken);
    return gradients_of(result, of_result, taken);
  }

 private:
  at::Tensor run_again(const variable_list& tensors) const {
    const std::shared_ptr<void> scopes = reopen_ ? reopen_() : autocast();
    const ForwardContext context(reopen_);  // for a part in this one
    const OwnCasts casts;
    const RandomAsBefore random(random_);
    const at::AutoGradMode with_gradients(true);
    return compute(tensors);
  }

  at::Tensor compute(const variable_list& tensors) const {
    return forward_({tensors.begin(), tensors.begin() + static_cast<std::ptrdiff_t>(inputs_)});
  }

  std::shared_ptr<void> autocast() const {
    return std::make_shared<AutocastAsBefore>(at::kCPU, has_autocast_, autocast_dtype_);
  }

  static variable_list gradients_of(const at::Tensor& result,
                                    const at::Tensor& of_result,
                                    const variable_list& tensors) {
    variable_list wanted;
    for (const at::Tensor& tensor : tensors) {
      if (tensor.requires_grad()) {
        wanted.push_back(tensor);
      }
    }
    const variable_list found = torch::autograd::grad({result},
                                                      wanted,
                                                      {of_result},
                                                      /*retain_graph=*/false,
                                                      /*create_graph=*/false,
                                                      /*allow_unused=*/true);
    variable_list all(tensors.size());
    auto next = found.begin();
    for (size_t i = 0; i < tensors.size(); ++i) {
      all[i] = tensors[i].requires_grad() ? *next++ : at::Tensor();
    }
    return all;
  }

  torch::nn::Module& module_;
  std::function<at::Tensor(const std::vector<at::Tensor>&)> forward_;
  size_t inputs_;
  ForwardContext::Reopen reopen_;
  bool has_autocast_;
  at::ScalarType autocast_dtype_;
  at::Tensor random_;  // the generator's state before the first run
};

/// Holds a Part for autograd, which keeps values alone.
struct PartHolder : torch::CustomClassHolder {
  explicit PartHolder(std::shared_ptr<const Part> held) : part(std::move(held)) {}

  std::shared_ptr<const Part> part;
};

class Recomputed : public torch::autograd::Function<Recomputed> {
 public:
  static at::Tensor forward(AutogradContext* context,
                            const std::shared_ptr<const Part>& part,
                            at::TensorList given) {
    const variable_list tensors = given.vec();
    context->save_for_backward(tensors);
    context->saved_data["part"] = c10::IValue::make_capsule(c10::make_intrusive<PartHolder>(part));
    return part->run(tensors);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    if (at::GradMode::is_enabled()) {
      throw NotSupportedError(
          "recompute: second derivatives of a part that is computed again are not available; leave "
          "recompute out");
    }
    const auto holder =
        c10::static_intrusive_pointer_cast<PartHolder>(context->saved_data["part"].toCapsule());
    variable_list found =
        holder->part->gradients(context->get_saved_variables(), gradients.front());
    found.insert(found.begin(), at::Tensor());  // of `part`
    return found;
  }
};

}  // namespace

// gcc 14 takes the empty vector<bool> in LibTorch's `apply` for one that it copies from.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif

at::Tensor recompute(torch::nn::Module& module,
                     std::function<at::Tensor(const std::vector<at::Tensor>&)> forward,
                     const std::vector<at::Tensor>& inputs) {
  variable_list tensors = inputs;
  for (const at::Tensor& parameter : module.parameters()) {
    tensors.push_back(parameter);
  }
  const bool has_gradients = std::any_of(
      tensors.begin(), tensors.end(), [](const at::Tensor& t) { return t.requires_grad(); });
  if (!has_gradients || !at::GradMode::is_enabled()) {
    return forward(inputs);
  }
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.is_cpu()) {
      throw NotSupportedError(fmt::format(
          "recompute: expected tensors on the CPU, got one on {}: random numbers of other devices "
          "cannot be drawn again",
          tensor.device().str()));
    }
  }
  define_operators();
  const auto part = std::make_shared<const Part>(module, std::move(forward), inputs.size());
  return Recomputed::apply(part, at::TensorList(tensors));
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace rondo
