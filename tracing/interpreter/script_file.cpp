#include "tracing/interpreter/script_file.h"

#include <fmt/format.h>

#include <exception>
#include <sstream>
#include <utility>
#include <vector>

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/serialization/import.h>

#include "core/error.h"
#include "tracing/interpreter/jit_graph.h"
#include "tracing/program/storages.h"

namespace rondo {

namespace {

using torch::jit::Graph;
using torch::jit::Module;
using torch::jit::Node;
using torch::jit::Value;

constexpr const char kModel[] = "model.";

/// Batch norms say that they write their statistics; in evaluations they do not.
bool is_evaluation(const Instruction& instruction) {
  const std::vector<c10::Argument>& names = instruction.op.schema().arguments();
  for (size_t i = 0; i < names.size(); ++i) {
    const Argument& argument = instruction.arguments[i];
    const bool is_mode = names[i].name() == "training" || names[i].name() == "train";
    if (is_mode && argument.kind == Argument::Kind::Constant && argument.constant.isBool()) {
      return !argument.constant.toBool();
    }
  }
  return false;
}

void refuse_what_scripts_lack(const StepProgram& program) {
  const StorageFacts facts(program);
  for (const Instruction& instruction : program.instructions) {
    const std::string name = operator_name(instruction.op);
    if (name.rfind("rondo::", 0) == 0) {
      throw NotSupportedError(fmt::format(
          "the forward pass runs {}, which only rondo has: export it as inference-step", name));
    }
    for (const SlotId slot : instruction.writes) {
      if (facts.is_external[storage_of(program, slot)] && !is_evaluation(instruction)) {
        throw NotSupportedError(fmt::format(
            "the forward pass changes what it does not make ({}): a TorchScript file would give "
            "another answer each time",
            name));
      }
    }
  }
}

/// A tensor in a tree of modules, and how a graph reaches it.
class Attributes {
 public:
  Attributes(Module& module, Graph& graph) : module_(module), graph_(graph) {}

  /// \param path  "layer.0.weight"
  Value* add(const std::string& path, const at::Tensor& tensor) {
    Module owner = module_;
    Value* value = graph_.inputs().front();
    size_t begin = 0;
    for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', begin)) {
      const std::string part = path.substr(begin, dot - begin);
      if (!owner.hasattr(part)) {
        owner.register_module(part, Module(class_of(path.substr(0, dot))));
      }
      owner = owner.attr(part).toModule();
      value = get(value, part, owner.type());
      begin = dot + 1;
    }
    const std::string name = path.substr(begin);
    owner.register_parameter(name, tensor.detach().clone(), /*is_buffer=*/true);
    return get(value, name, c10::TensorType::get());
  }

 private:
  Value* get(Value* owner, const std::string& name, const c10::TypePtr& type) {
    Value* const value = graph_.insertGetAttr(owner, name);
    return value->setType(type);
  }

  /// A class's name of the path to a module.
  static std::string class_of(std::string path) {
    for (char& c : path) {
      c = c == '.' ? '_' : c;
    }
    return "Module_" + path;
  }

  Module& module_;
  Graph& graph_;
};

std::string without_model(const std::string& name) {
  return name.rfind(kModel, 0) == 0 ? name.substr(sizeof kModel - 1) : name;
}

/// Several outputs are a dictionary, which is still in the order of its keys.
void return_outputs(const StepProgram& program, Graph& graph) {
  if (program.outputs.size() == 1) {
    return;
  }
  std::vector<Value*> names;
  std::vector<Value*> values;
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    names.push_back(graph.insertConstant(program.outputs[i].first));
    values.push_back(graph.outputs()[i]);
  }
  Node* const dictionary = graph.insertNode(
      graph.createDict(c10::StringType::get(), c10::TensorType::get(), names, values));
  while (!graph.outputs().empty()) {
    graph.eraseOutput(graph.outputs().size() - 1);
  }
  graph.registerOutput(dictionary->output());
}

/// The bytes of a module's file, which can be read.
std::string checked(const Module& module) {
  std::stringstream bytes;
  try {
    module.save(bytes);
    torch::jit::load(bytes);
  } catch (const c10::Error&) {
    std::throw_with_nested(NotSupportedError(
        "TorchScript cannot express the forward pass: export it as inference-step"));
  }
  return bytes.str();
}

}  // namespace

std::string to_script_file(const StepProgram& program) {
  refuse_what_scripts_lack(program);
  const JitGraph built = to_jit_graph(program);
  Graph& graph = *built.graph;
  Module module("Exported");
  graph.insertInput(0, "self")->setType(module.type());
  for (size_t i = 0; i < built.inputs.size(); ++i) {
    graph.inputs()[1 + i]->setDebugName(slot_of(program, built.inputs[i]).name);
  }
  const size_t first = 1 + built.inputs.size();
  {
    const torch::jit::WithInsertPoint at_the_beginning(*graph.block()->nodes().begin());
    Attributes attributes(module, graph);
    for (size_t i = 0; i < built.captured.size(); ++i) {
      const Slot& slot = slot_of(program, built.captured[i]);
      graph.inputs()[first + i]->replaceAllUsesWith(
          attributes.add(without_model(slot.name), slot.value));
    }
  }
  while (graph.inputs().size() > first) {
    graph.eraseInput(graph.inputs().size() - 1);
  }
  return_outputs(program, graph);
  graph.inputs().front()->setType(module.type());  // by now with its tensors
  const auto& functions = module._ivalue()->compilation_unit();
  auto* const function = functions->create_function(
      c10::QualifiedName(*module.type()->name(), "forward"), built.graph);
  module.type()->addMethod(function);
  return checked(module);
}

}  // namespace rondo
