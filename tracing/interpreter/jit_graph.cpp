#include "tracing/interpreter/jit_graph.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/operator.h>

#include "core/error.h"

namespace rondo {

namespace {

using torch::jit::Node;
using torch::jit::Value;

// LibTorch 2 hides one overload from graphs: a dtype and a size look alike there.
c10::OperatorHandle operator_in_graph(const c10::OperatorHandle& op) {
  if (operator_name(op) == "aten::view.dtype") {
    return c10::Dispatcher::singleton().findSchemaOrThrow("rondo::view_dtype", "");
  }
  return op;
}

class GraphBuilder {
 public:
  explicit GraphBuilder(const StepProgram& program) : program_(program) {
    result_.graph = std::make_shared<torch::jit::Graph>();
  }

  JitGraph build() {
    add_inputs(SlotKind::Input, result_.inputs);
    add_inputs(SlotKind::Captured, result_.captured);
    for (const Instruction& instruction : program_.instructions) {
      add_instruction(instruction);
    }
    for (const auto& output : program_.outputs) {
      add_output(output.second);
    }
    for (const ClosureOutput& closure : program_.closures) {
      std::for_each(
          closure.tensors.begin(), closure.tensors.end(), [&](SlotId slot) { add_output(slot); });
    }
    return std::move(result_);
  }

 private:
  // Every input of the batch, so that binding needs no table; captured state only where it is used.
  void add_inputs(SlotKind kind, std::vector<SlotId>& slots) {
    const std::vector<bool> used = used_slots(program_);
    for (size_t i = 0; i < program_.slots.size(); ++i) {
      if (program_.slots[i].kind == kind && (kind == SlotKind::Input || used[i])) {
        values_[static_cast<SlotId>(i)] = result_.graph->addInput();
        slots.push_back(static_cast<SlotId>(i));
      }
    }
  }

  void add_instruction(const Instruction& instruction) {
    const c10::OperatorHandle op = operator_in_graph(instruction.op);
    const c10::FunctionSchema& schema = op.schema();
    std::vector<Value*> arguments;
    for (size_t i = 0; i < instruction.arguments.size(); ++i) {
      arguments.push_back(argument(instruction.arguments[i], schema.arguments()[i].type()));
    }
    Node* const node = result_.graph->insertNode(
        result_.graph->create(c10::Symbol::fromQualString(schema.name()), arguments, 0));
    for (size_t i = 0; i < instruction.results.size(); ++i) {
      Value* const value = node->addOutput()->setType(schema.returns()[i].type());
      bind(instruction.results[i], value);
    }
    check_overload(*node, schema);
  }

  // A graph names an operator without its overload; types choose it. They must choose the recorded
  // one.
  static void check_overload(const Node& node, const c10::FunctionSchema& schema) {
    const torch::jit::Operator* const found = node.maybeOperator();
    if (found == nullptr || found->schema().overload_name() != schema.overload_name()) {
      throw CaptureError(
          schema.name() + "." + schema.overload_name() + " cannot be written into a graph: " +
          (found == nullptr ? "TorchScript knows no such overload"
                            : "TorchScript takes ." + found->schema().overload_name() + " for it"));
    }
  }

  Value* argument(const Argument& argument, const c10::TypePtr& type) {
    switch (argument.kind) {
      case Argument::Kind::Constant:
        return constant(argument.constant, type);
      case Argument::Kind::Tensor:
        return tensor(argument.slots[0]);
      case Argument::Kind::TensorList:
        break;
    }
    std::vector<Value*> items;
    for (const SlotId slot : argument.slots) {
      items.push_back(slot == kNoTensor ? result_.graph->insertConstant(c10::IValue())
                                        : tensor(slot));
    }
    return list(items, type);
  }

  Value* list(const std::vector<Value*>& items, const c10::TypePtr& type) {
    const auto optional = type->cast<c10::OptionalType>();
    const auto list_type = (optional ? optional->getElementType() : type)->expect<c10::ListType>();
    return result_.graph->insertNode(result_.graph->createList(list_type->getElementType(), items))
        ->output();
  }

  Value* constant(const c10::IValue& value, const c10::TypePtr& type) {
    const bool is_plain_list =
        value.isIntList() || value.isDoubleList() || value.isBoolList() || !value.isList();
    if (is_plain_list) {
      return result_.graph->insertConstant(value);
    }
    std::vector<Value*> items;
    for (const c10::IValue& item : value.toListRef()) {
      items.push_back(result_.graph->insertConstant(item));
    }
    return list(items, type);
  }

  Value* tensor(SlotId slot) {
    if (slot == kNoTensor) {  // an undefined tensor, which is not None
      return result_.graph->insertNode(result_.graph->createAutogradZero())
          ->output()
          ->setType(c10::TensorType::get());
    }
    Value*& value = values_[slot];
    if (value == nullptr) {
      value = result_.graph->insertConstant(program_.slots[static_cast<size_t>(slot)].value);
    }
    return value;
  }

  void bind(const Result& result, Value* value) {
    if (result.kind == Argument::Kind::Tensor && result.slots[0] != kNoTensor) {
      values_.try_emplace(result.slots[0], value);
    }
    if (result.kind != Argument::Kind::TensorList) {
      return;
    }
    Node* const unpack =
        result_.graph->insertNode(result_.graph->createListUnpack(value, result.slots.size()));
    for (size_t i = 0; i < result.slots.size(); ++i) {
      if (result.slots[i] != kNoTensor) {
        values_.try_emplace(result.slots[i], unpack->outputs()[i]);
      }
    }
  }

  void add_output(SlotId slot) {
    result_.graph->registerOutput(tensor(slot));
    result_.outputs.push_back(slot);
  }

  const StepProgram& program_;
  JitGraph result_;
  std::unordered_map<SlotId, Value*> values_;
};

}  // namespace

JitGraph to_jit_graph(const StepProgram& program) {
  return GraphBuilder(program).build();
}

std::string to_text(const JitGraph& graph) {
  return graph.graph->toString(/*print_source_locations=*/false);
}

}  // namespace rondo
