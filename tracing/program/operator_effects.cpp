#include "tracing/program/operator_effects.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <ATen/core/enum_tag.h>

#include "core/operator_facts.h"
#include "tracing/program/guards.h"
#include "tracing/program/step_program.h"

namespace rondo {

namespace {

// Arguments that kernels write although the schema does not say so. [LibTorch 1.13 and 2.6]
struct UndeclaredWrites {
  std::string_view op;
  std::array<std::string_view, 2> arguments;
};

constexpr std::array<UndeclaredWrites, 10> kUndeclaredWrites = {{
    {"aten::native_batch_norm", {"running_mean", "running_var"}},
    {"aten::cudnn_batch_norm", {"running_mean", "running_var"}},
    {"aten::miopen_batch_norm", {"running_mean", "running_var"}},
    {"aten::_batch_norm_impl_index", {"running_mean", "running_var"}},
    {"aten::batch_norm", {"running_mean", "running_var"}},
    {"aten::instance_norm", {"running_mean", "running_var"}},
    {"aten::batch_norm_update_stats", {"running_mean", "running_var"}},
    {"aten::batch_norm_gather_stats", {"running_mean", "running_var"}},
    {"aten::batch_norm_gather_stats_with_counts", {"running_mean", "running_var"}},
    {"aten::rrelu_with_noise", {"noise", ""}},
}};

// The tags of 1.13 miss these.
constexpr std::array<std::string_view, 2> kReadsHost = {"aten::_nnz", "aten::_local_scalar_dense"};

// Answers on the host that follow from the shapes of the arguments, not from their bytes.
constexpr std::array<std::string_view, 9> kShapeQueries = {"aten::is_same_size",
                                                           "aten::is_set_to",
                                                           "aten::is_pinned",
                                                           "aten::_has_same_storage_numel",
                                                           "aten::_fused_sdp_choice",
                                                           "aten::_use_cudnn_ctc_loss",
                                                           "aten::sym_size",
                                                           "aten::sym_numel",
                                                           "aten::sym_stride"};

constexpr std::array<std::string_view, 5> kAllocates = {"aten::empty",
                                                        "aten::empty_like",
                                                        "aten::empty_strided",
                                                        "aten::new_empty",
                                                        "aten::new_empty_strided"};

constexpr std::array<std::string_view, 12> kReadsShapeOnly = {"aten::empty_like",
                                                              "aten::new_empty",
                                                              "aten::new_empty_strided",
                                                              "aten::zeros_like",
                                                              "aten::ones_like",
                                                              "aten::full_like",
                                                              "aten::new_zeros",
                                                              "aten::new_ones",
                                                              "aten::new_full",
                                                              "aten::rand_like",
                                                              "aten::randn_like",
                                                              "aten::randint_like"};

// In place, whatever was there before. Every other `name_` reads what it writes.
constexpr std::array<std::string_view, 12> kOverwrites = {"aten::fill_",
                                                          "aten::zero_",
                                                          "aten::copy_",
                                                          "aten::uniform_",
                                                          "aten::normal_",
                                                          "aten::random_",
                                                          "aten::bernoulli_",
                                                          "aten::exponential_",
                                                          "aten::geometric_",
                                                          "aten::cauchy_",
                                                          "aten::log_normal_",
                                                          "aten::_foreach_zero_"};

struct Refusal {
  std::string_view op;
  const char* why;
};

constexpr std::array<Refusal, 2> kRefusals = {{
    {"aten::set_", "it gives a tensor other memory; copy_ into the tensor instead"},
    {"aten::_cudnn_rnn",
     "it writes its weight buffer, which its schema does not say; use a cell in a loop"},
}};

template <class List>
bool contains(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool takes_generator(const c10::FunctionSchema& schema) {
  return std::any_of(
      schema.arguments().begin(), schema.arguments().end(), [](const auto& argument) {
        return argument.type()->str().find("Generator") != std::string::npos;
      });
}

bool returns_host_values_only(const c10::FunctionSchema& schema) {
  const auto& returns = schema.returns();
  return !returns.empty() && std::none_of(returns.begin(), returns.end(), [](const auto& result) {
    return result.type()->str().find("Tensor") != std::string::npos;
  });
}

void correct_writes(const c10::FunctionSchema& schema, OperatorEffects& effects) {
  for (const UndeclaredWrites& entry : kUndeclaredWrites) {
    if (entry.op != schema.name()) {
      continue;
    }
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
      if (contains(entry.arguments, schema.arguments()[i].name())) {
        effects.writes[i] = true;
      }
    }
  }
}

bool may_do_anything(const OperatorFacts* facts) {
  return facts != nullptr &&
         (facts->is_collective || facts->effects == OperatorFacts::Effects::Opaque);
}

// `index` reads a size only when an index is a mask, which the recorder sees in the arguments.
bool has_data_dependent_result(const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  return contains(kReadsHost, name) || op.hasTag(at::Tag::data_dependent_output) ||
         has_size_from_data(op);
}

}  // namespace

bool is_written(const c10::Argument& argument) {
  const auto* const alias = argument.alias_info();
  if (alias == nullptr) {
    return false;
  }
  // In `Tensor(a!)[]` it is the contained type that is written.
  return alias->isWrite() ||
         (!alias->containedTypes().empty() && alias->containedTypes()[0].isWrite());
}

OperatorEffects effects_of(const c10::OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  const std::string& name = schema.name();
  const OperatorFacts* const facts = find_operator_facts(operator_name(op));
  const bool is_known = facts != nullptr || name.rfind("aten::", 0) == 0;
  OperatorEffects effects;
  for (const c10::Argument& argument : schema.arguments()) {
    effects.writes.push_back(is_written(argument));
  }
  const bool has_generator = takes_generator(schema);
  const bool writes =
      std::find(effects.writes.begin(), effects.writes.end(), true) != effects.writes.end();
  correct_writes(schema, effects);
  effects.draws_random = has_generator || op.hasTag(at::Tag::nondeterministic_seeded);
  effects.is_opaque = (!is_known && (has_generator || writes)) || may_do_anything(facts);
  effects.follows_from_arguments = is_known && !effects.draws_random && !effects.is_opaque;
  effects.changes_view_only = op.hasTag(at::Tag::inplace_view);
  effects.allocates = contains(kAllocates, name);
  effects.reads_shape_only = contains(kReadsShapeOnly, name);
  effects.reads_what_it_writes = name.back() == '_' && !contains(kOverwrites, name);
  effects.asks_for_grad_mode = name == "aten::mkldnn_rnn_layer";
  effects.is_ignored = contains(kShapeQueries, name) || name.rfind("profiler::", 0) == 0;
  effects.gives_numbers_only = returns_host_values_only(schema);
  effects.reads_host =
      !effects.is_ignored && (effects.gives_numbers_only || has_data_dependent_result(op));
  for (const Refusal& refusal : kRefusals) {
    if (refusal.op == name) {
      effects.refusal = refusal.why;
    }
  }
  return effects;
}

}  // namespace rondo
