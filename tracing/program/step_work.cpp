#include "tracing/program/step_work.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>

namespace rondo {

namespace {

/// An instruction, whose arguments are looked up by the names of its schema.
class CountedCall {
 public:
  CountedCall(const StepProgram& program, const Instruction& instruction)
      : program_(program), instruction_(instruction) {}

  /// Null: undefined, or there is no such argument.
  const Slot* tensor(const char* name) const {
    const Argument* const argument = find(name);
    return argument == nullptr || argument->kind != Argument::Kind::Tensor ||
                   argument->slots[0] == kNoTensor
               ? nullptr
               : &slot(argument->slots[0]);
  }

  const Slot* result() const {
    const bool is_there = !instruction_.results.empty() &&
                          instruction_.results[0].kind == Argument::Kind::Tensor &&
                          instruction_.results[0].slots[0] != kNoTensor;
    return is_there ? &slot(instruction_.results[0].slots[0]) : nullptr;
  }

  bool is_true(const char* name) const {
    const Argument* const argument = find(name);
    return argument != nullptr && argument->constant.isBool() && argument->constant.toBool();
  }

  /// How many of a list of bools are true, among the first `among`.
  int64_t count_true(const char* name, size_t among) const {
    const Argument* const argument = find(name);
    if (argument == nullptr || !argument->constant.isBoolList()) {
      return static_cast<int64_t>(among);
    }
    const auto flags = argument->constant.toBoolList();
    int64_t count = 0;
    for (size_t i = 0; i < std::min(among, flags.size()); ++i) {
      count += flags[i] ? 1 : 0;
    }
    return count;
  }

 private:
  const Argument* find(const char* name) const {
    const auto& parameters = instruction_.op.schema().arguments();
    for (size_t i = 0; i < std::min(parameters.size(), instruction_.arguments.size()); ++i) {
      if (parameters[i].name() == name) {
        return &instruction_.arguments[i];
      }
    }
    return nullptr;
  }

  const Slot& slot(SlotId id) const { return program_.slots[static_cast<size_t>(id)]; }

  const StepProgram& program_;
  const Instruction& instruction_;
};

double elements_in(const Slot* slot) {
  return slot == nullptr ? 0.0 : static_cast<double>(numel(*slot));
}

double last_size_of(const Slot* slot) {
  return slot == nullptr || slot->sizes.empty() ? 1.0 : static_cast<double>(slot->sizes.back());
}

/// Elements of a weight for each of its first dimension.
double row_of(const Slot* weight) {
  return weight == nullptr || weight->sizes.empty() || weight->sizes[0] == 0
             ? 0.0
             : elements_in(weight) / static_cast<double>(weight->sizes[0]);
}

/// A product of matrices: as many pairs for each result as the left one has columns.
std::function<double(const CountedCall&)> product_flops(const char* left) {
  return [left](const CountedCall& call) {
    return 2.0 * elements_in(call.result()) * last_size_of(call.tensor(left));
  };
}

/// \param input, output  whose elements each meet a row of the weight; which of them is the larger
///                       side depends on the direction
double convolution_flops(const CountedCall& call, const Slot* input, const Slot* output) {
  return 2.0 * elements_in(call.is_true("transposed") ? input : output) *
         row_of(call.tensor("weight"));
}

std::function<double(const CountedCall&)> convolution_flops_of(const char* input) {
  return [input](const CountedCall& call) {
    return convolution_flops(call, call.tensor(input), call.result());
  };
}

/// The gradients of input and weight, where they are wanted, take a convolution each.
double gradients_flops(const CountedCall& call) {
  return static_cast<double>(call.count_true("output_mask", 2)) *
         convolution_flops(call, call.tensor("input"), call.tensor("grad_output"));
}

/// Each step of a sequence meets both weights.
std::function<double(const CountedCall&)> recurrent_flops(const char* first,
                                                          const char* second,
                                                          double times) {
  return [=](const CountedCall& call) {
    const Slot* const input = call.tensor("input");
    const double weights = elements_in(call.tensor(first)) + elements_in(call.tensor(second));
    return times * 2.0 * elements_in(input) / last_size_of(input) * weights;
  };
}

/// \param products  of queries with keys or of weights with values
std::function<double(const CountedCall&)> attention_flops(double products) {
  return [products](const CountedCall& call) {
    const Slot* const query = call.tensor("query");
    const Slot* const key = call.tensor("key");
    if (query == nullptr || key == nullptr || key->sizes.size() < 2) {
      return 0.0;
    }
    return products * 2.0 * elements_in(query) *
           static_cast<double>(key->sizes[key->sizes.size() - 2]);
  };
}

const std::map<std::string, std::function<double(const CountedCall&)>>& counted_operators() {
  static const std::map<std::string, std::function<double(const CountedCall&)>> counted = {
      {"aten::mm", product_flops("self")},
      {"aten::addmm", product_flops("mat1")},
      {"aten::addmm_", product_flops("mat1")},
      {"aten::_addmm_activation", product_flops("mat1")},
      {"aten::bmm", product_flops("self")},
      {"aten::baddbmm", product_flops("batch1")},
      {"aten::baddbmm_", product_flops("batch1")},
      {"aten::mv", product_flops("self")},
      {"aten::addmv", product_flops("mat")},
      {"aten::dot", product_flops("self")},
      {"aten::vdot", product_flops("self")},
      {"aten::linear", product_flops("input")},
      {"aten::mkldnn_linear", product_flops("self")},
      {"aten::convolution", convolution_flops_of("input")},
      {"aten::_convolution", convolution_flops_of("input")},
      {"aten::convolution_overrideable", convolution_flops_of("input")},
      {"aten::mkldnn_convolution", convolution_flops_of("self")},
      {"aten::_slow_conv2d_forward", convolution_flops_of("self")},
      {"aten::convolution_backward", gradients_flops},
      {"aten::mkldnn_rnn_layer", recurrent_flops("weight0", "weight1", 1.0)},
      {"aten::mkldnn_rnn_layer_backward", recurrent_flops("weight1", "weight2", 2.0)},
      {"aten::_scaled_dot_product_flash_attention_for_cpu", attention_flops(2.0)},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", attention_flops(5.0)},
  };
  return counted;
}

/// The type of number that it computes with.
c10::ScalarType number_type_of(const StepProgram& program, const Instruction& instruction) {
  for (const Result& result : instruction.results) {
    for (const SlotId slot : result.slots) {
      if (slot != kNoTensor) {
        return program.slots[static_cast<size_t>(slot)].dtype;
      }
    }
  }
  return at::kFloat;
}

bool is_view_only(const StepProgram& program, const Instruction& instruction) {
  if (!instruction.writes.empty() || instruction.results.empty()) {
    return false;
  }
  std::set<int32_t> storages;
  for_each_slot(instruction.arguments, [&](SlotId slot) {
    storages.insert(program.slots[static_cast<size_t>(slot)].storage);
  });
  bool is_inside = true;
  for_each_slot(instruction.results, [&](SlotId slot) {
    is_inside = is_inside && storages.count(program.slots[static_cast<size_t>(slot)].storage) > 0;
  });
  return is_inside;
}

}  // namespace

void WorkDone::add(const StepWork& step, int64_t runs) {
  const auto times = static_cast<double>(runs);
  for (const auto& [type, of_type] : step.flops) {
    flops[type] += times * of_type;
  }
  bytes += times * step.bytes;
}

void WorkDone::add(const WorkDone& other) {
  for (const auto& [type, of_type] : other.flops) {
    flops[type] += of_type;
  }
  bytes += other.bytes;
}

double WorkDone::all_flops() const {
  double sum = 0.0;
  for (const auto& of_type : flops) {
    sum += of_type.second;
  }
  return sum;
}

double flops_of(const StepProgram& program, const Instruction& instruction) {
  const auto counted = counted_operators().find(instruction.op.operator_name().name);
  return counted == counted_operators().end() ? 0.0
                                              : counted->second(CountedCall(program, instruction));
}

Flops flops_of(const StepProgram& program) {
  Flops flops;
  for (const Instruction& instruction : program.instructions) {
    if (const double added = flops_of(program, instruction); added > 0.0) {
      flops[number_type_of(program, instruction)] += added;
    }
  }
  return flops;
}

int64_t bytes_of(const StepProgram& program, const Instruction& instruction) {
  std::set<SlotId> slots;
  for_each_slot(instruction.arguments, [&](SlotId slot) { slots.insert(slot); });
  for_each_slot(instruction.results, [&](SlotId slot) { slots.insert(slot); });
  int64_t bytes = 0;
  for (const SlotId id : slots) {
    const Slot& slot = program.slots[static_cast<size_t>(id)];
    bytes += numel(slot) * static_cast<int64_t>(c10::elementSize(slot.dtype));
  }
  return bytes;
}

double bytes_moved(const StepProgram& program) {
  double bytes = 0.0;
  for (const Instruction& instruction : program.instructions) {
    if (!instruction.is_allocation && !is_view_only(program, instruction)) {
      bytes += static_cast<double>(bytes_of(program, instruction));
    }
  }
  return bytes;
}

}  // namespace rondo
