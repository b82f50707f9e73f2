#include "tracing/recording/origins.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/SequenceNumber.h>
#include <torch/csrc/jit/runtime/interpreter.h>

namespace rondo {

namespace {

/// A node of autograd's graph that is being computed.
struct Node {
  std::string name;
  int64_t sequence_number = -1;  // of the forward operator that made it
};

thread_local std::vector<Node> running_nodes;
thread_local Node last_node;

std::unique_ptr<at::ObserverContext> enter_node(const at::RecordFunction& node) {
  running_nodes.push_back({node.name(), node.seqNr()});
  return nullptr;
}

void leave_node(const at::RecordFunction&, at::ObserverContext*) {
  if (!running_nodes.empty()) {
    last_node = std::move(running_nodes.back());
    running_nodes.pop_back();
  }
}

// Remembered: looking up an address takes half a millisecond, as LibTorch has that many symbols.
bool is_autograd_engine(void* address) {
  thread_local std::unordered_map<void*, bool> known;
  const auto [place, is_new] = known.emplace(address, false);
  if (Dl_info info{}; is_new && ::dladdr(address, &info) != 0 && info.dli_sname != nullptr) {
    place->second = std::strstr(info.dli_sname, "8autograd6Engine") != nullptr;
  }
  return place->second;
}

/// Whether code that no node runs is autograd's all the same: when a node is done it sums what was
/// broadcast.
bool is_after_node(const CallStack& stack) {
  return std::any_of(stack.begin(), stack.end(), is_autograd_engine);
}

// Where a TorchScript module stands in its source; "" outside of TorchScript.
std::string script_place() {
  const auto stack = torch::jit::currentCallstack();
  if (stack.empty()) {
    return "";
  }
  if (const auto place = stack.front().range.file_line_col()) {
    const auto& [file, line, column] = *place;
    return stack.front().filename + " (" + file + ":" + std::to_string(line) + ")";
  }
  return stack.front().filename;
}

// "model.net.0.weight" lies in module "net.0".
std::string module_of(const std::string& tensor) {
  constexpr std::string_view kModel = "model.";
  constexpr std::string_view kView = "view of ";
  const size_t skipped = tensor.compare(0, kView.size(), kView) == 0 ? kView.size() : 0;
  if (tensor.compare(skipped, kModel.size(), kModel) != 0) {
    return "";
  }
  const size_t begin = skipped + kModel.size();
  const size_t end = tensor.rfind('.');
  return end > begin ? tensor.substr(begin, end - begin) : "";
}

class ModuleFinder {
 public:
  explicit ModuleFinder(StepProgram& program)
      : program_(program), makers_(static_cast<size_t>(program.storages)) {
    for (const Slot& slot : program.slots) {
      if (slot.kind == SlotKind::Captured) {
        captured_[slot.storage].push_back(&slot);
      }
    }
  }

  void run() {
    for (const Instruction& instruction : program_.instructions) {
      Origin& origin = program_.origins[static_cast<size_t>(instruction.origin)];
      if (origin.phase == StepPhase::Backward && origin.forward > 0) {
        origin.module = program_.origins[static_cast<size_t>(origin.forward)].module;
      } else {
        origin.module = from_arguments(instruction, origin.phase);
      }
      const auto made = [&](SlotId slot) { maker(slot) = origin.module; };
      for_each_slot(instruction.results, made);
      std::for_each(instruction.writes.begin(), instruction.writes.end(), made);
    }
  }

 private:
  std::string& maker(SlotId slot) {
    return makers_[static_cast<size_t>(program_.slots[static_cast<size_t>(slot)].storage)];
  }

  // Of an update over many parameters: none. Else the module of a parameter, or of the producer.
  std::string from_arguments(const Instruction& instruction, StepPhase phase) {
    std::vector<std::string> own;
    std::string before;
    for_each_slot(instruction.arguments, [&](SlotId slot) {
      const std::string module = parameter_module(program_.slots[static_cast<size_t>(slot)]);
      if (!module.empty() && std::find(own.begin(), own.end(), module) == own.end()) {
        own.push_back(module);
      }
      before = before.empty() ? maker(slot) : before;
    });
    if (!own.empty()) {
      return own.size() == 1 ? own.front() : "";
    }
    const bool is_after = before.compare(0, 6, "after ") == 0;
    return before.empty() || is_after || phase != StepPhase::Forward ? before : "after " + before;
  }

  std::string parameter_module(const Slot& slot) const {
    const auto known = captured_.find(slot.storage);
    if (known == captured_.end()) {
      return "";
    }
    for (const Slot* captured : known->second) {
      if (may_share_bytes(slot, *captured)) {
        return module_of(captured->name);
      }
    }
    return "";
  }

  StepProgram& program_;
  std::vector<std::string> makers_;  // one a storage: the module that wrote it last
  std::map<int32_t, std::vector<const Slot*>> captured_;
};

}  // namespace

void OriginTracker::note(StepProgram& program, Instruction& instruction) {
  Origin origin;
  const auto id = static_cast<int32_t>(program.origins.size());
  CallStack stack = running_nodes.empty() ? call_stack() : CallStack();
  if (!running_nodes.empty() || (has_gone_back_ && is_after_node(stack))) {
    const Node& node = running_nodes.empty() ? last_node : running_nodes.back();
    has_gone_back_ = true;
    origin.phase = StepPhase::Backward;
    origin.node = node.name;
    origin.forward = forward_of(node.sequence_number);
  } else {
    origin.phase = has_gone_back_ ? StepPhase::Update : StepPhase::Forward;
    origin.stack = std::move(stack);
    origin.script = script_place();
    // Autograd makes the node of an operator before it calls the kernel. (-1: nodes that have no
    // operator, as those that accumulate gradients.)
    if (const uint64_t next = at::sequence_number::peek(); next > 0) {
      forward_.emplace(static_cast<int64_t>(next) - 1, id);
    }
  }
  program.origins.push_back(std::move(origin));
  instruction.origin = id;
}

int32_t OriginTracker::forward_of(int64_t sequence_number) const {
  const auto forward = forward_.find(sequence_number);
  return forward == forward_.end() ? 0 : forward->second;
}

BackwardWatch::BackwardWatch()
    : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(&enter_node, &leave_node)
                                             .scopes({at::RecordScope::BACKWARD_FUNCTION}))) {}

BackwardWatch::~BackwardWatch() {
  at::removeCallback(handle_);
  running_nodes.clear();
}

void find_modules(StepProgram& program) {
  ModuleFinder(program).run();
}

}  // namespace rondo
