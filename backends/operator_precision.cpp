#include "backends/operator_precision.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>
#include <torch/library.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "backends/operator_replacement.h"
#include "core/error.h"
#include "core/glob.h"

namespace rondo {

namespace {

// Above autograd and autocast, so that casts are differentiated, and below the key with which
// tracing/recording/whole_composites.h takes composites over. No C++ program uses it otherwise.
constexpr c10::DispatchKey kKey = c10::DispatchKey::TESTING_ONLY_GenericWrapper;

thread_local const OperatorPrecision* current = nullptr;

std::string_view without_namespace(std::string_view name) {
  const size_t colons = name.find("::");
  return colons == std::string_view::npos ? name : name.substr(colons + 2);
}

bool is_half(const at::Tensor& tensor) {
  return tensor.defined() &&
         (tensor.scalar_type() == at::kBFloat16 || tensor.scalar_type() == at::kHalf);
}

c10::IValue widened(const c10::IValue& value) {
  if (value.isTensor()) {
    return is_half(value.toTensor()) ? value.toTensor().to(at::kFloat) : value;
  }
  if (value.isTensorList()) {
    std::vector<at::Tensor> tensors = value.toTensorVector();
    for (at::Tensor& tensor : tensors) {
      tensor = is_half(tensor) ? tensor.to(at::kFloat) : tensor;
    }
    return tensors;
  }
  return value;
}

bool is_float(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() &&
         value.toTensor().scalar_type() == at::kFloat;
}

bool reads_float(const torch::jit::Stack& stack, size_t arguments) {
  return std::any_of(stack.end() - static_cast<std::ptrdiff_t>(arguments),
                     stack.end(),
                     [](const c10::IValue& value) {
                       return is_float(value) ||
                              (value.isTensorList() && !value.toTensorList().empty());
                     });
}

/// Calls `round` for each result that is a float32 tensor with dimensions, and no view or argument.
template <class Round>
void round_results(const c10::FunctionSchema& schema,
                   torch::jit::Stack& stack,
                   const Round& round) {
  const size_t count = schema.returns().size();
  for (size_t i = 0; i < count; ++i) {
    c10::IValue& result = stack[stack.size() - count + i];
    if (schema.returns()[i].alias_info() == nullptr && is_float(result) &&
        result.toTensor().dim() > 0) {
      result = round(result.toTensor());
    }
  }
}

void run_in_float32(const c10::OperatorHandle& op,
                    c10::DispatchKeySet below,
                    torch::jit::Stack& stack) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const auto first = stack.end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size());
  const bool is_narrow = std::any_of(first, stack.end(), [](const c10::IValue& value) {
    return value.isTensor() && is_half(value.toTensor());
  });
  std::transform(first, stack.end(), first, widened);
  op.redispatchBoxed(below - c10::autocast_dispatch_keyset, &stack);
  if (is_narrow && current->rounded_to) {
    round_results(op.schema(), stack, [](const at::Tensor& result) {
      return result.to(*current->rounded_to);
    });
  }
}

/// What makes memory and leaves it as it is.
bool is_uninitialised(std::string_view name) {
  return name.rfind("empty", 0) == 0 || name.rfind("new_empty", 0) == 0;
}

void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::DispatchKeySet below =
      keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey);
  const std::string_view name = without_namespace(op.operator_name().name);
  if (run_replacement(op, name, *stack)) {
    return;
  }
  // What writes its argument cannot write a wider copy of it.
  const bool is_kept =
      current != nullptr && !op.schema().is_mutable() && matches_any(current->in_float32, name);
  if (!is_kept && op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) {
    op.redispatchBoxed(below, stack);  // its parts come here
    return;
  }
  const c10::impl::ExcludeDispatchKeyGuard once(kKey);
  if (is_kept) {
    run_in_float32(op, below, *stack);
    return;
  }
  const bool is_rounded = current != nullptr && current->emulates_float16 &&
                          !is_uninitialised(name) &&
                          reads_float(*stack, op.schema().arguments().size());
  op.redispatchBoxed(below, stack);
  if (is_rounded) {
    round_results(op.schema(), *stack, [](const at::Tensor& result) {
      return result.to(at::kHalf).to(at::kFloat);
    });
  }
}

void register_with_dispatcher() {
  static const bool done = [] {
    static torch::Library fallback(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
    fallback.fallback(torch::CppFunction::makeFromBoxedFunction<&run>());
    return true;
  }();
  static_cast<void>(done);
}

}  // namespace

const std::vector<std::string>& operators_best_in_float32() {
  static const std::vector<std::string> names = {"acos",
                                                 "asin",
                                                 "cosh",
                                                 "erfinv",
                                                 "exp",
                                                 "expm1",
                                                 "log",
                                                 "log10",
                                                 "log2",
                                                 "log1p",
                                                 "reciprocal",
                                                 "rsqrt",
                                                 "sinh",
                                                 "tan",
                                                 "pow",
                                                 "softplus",
                                                 "layer_norm",
                                                 "group_norm",
                                                 "norm",
                                                 "frobenius_norm",
                                                 "nuclear_norm",
                                                 "renorm",
                                                 "logsumexp",
                                                 "prod",
                                                 "sum",
                                                 "cumprod",
                                                 "cumsum",
                                                 "softmax",
                                                 "log_softmax",
                                                 "dist",
                                                 "pdist",
                                                 "cdist",
                                                 "kl_div",
                                                 "*_loss",
                                                 "nll_loss*",
                                                 "cosine_similarity",
                                                 "binary_cross_entropy*"};
  return names;
}

void check_operator_names(const std::vector<std::string>& globs) {
  std::set<std::string> known;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    known.emplace(without_namespace(name.name));
  }
  for (const std::string& glob : globs) {
    if (std::none_of(known.begin(), known.end(), [&](const std::string& name) {
          return glob_match(glob, name);
        })) {
      throw UsageError(fmt::format("precision.float32_operators: there is no operator \"{}\"{}",
                                   glob,
                                   did_you_mean(glob, {known.begin(), known.end()})));
    }
  }
}

bool include_operators(bool is_included) {
  register_with_dispatcher();
  const bool before = c10::impl::tls_is_dispatch_key_included(kKey);
  c10::impl::tls_set_dispatch_key_included(kKey, is_included);
  return before;
}

OperatorPrecisionScope::OperatorPrecisionScope(const OperatorPrecision& precision)
    : outer_(std::exchange(current, &precision)),
      was_included_(c10::impl::tls_is_dispatch_key_included(kKey)) {
  register_with_dispatcher();
  c10::impl::tls_set_dispatch_key_included(kKey, !precision.does_nothing());
}

OperatorPrecisionScope::~OperatorPrecisionScope() {
  c10::impl::tls_set_dispatch_key_included(kKey, was_included_);
  current = outer_;
}

}  // namespace rondo
