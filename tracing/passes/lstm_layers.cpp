#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "core/state_dict.h"
#include "tracing/kernels/recurrent/lstm_layer.h"
#include "tracing/passes/passes.h"
#include "tracing/program/arguments.h"
#include "tracing/program/kernels_only.h"
#include "tracing/program/storages.h"

namespace rondo {

namespace {

constexpr const char* kForward = "aten::mkldnn_rnn_layer";
constexpr const char* kBackward = "aten::mkldnn_rnn_layer_backward";

// Of both operators: (x, input_weight, state_weight, input_bias, state_bias, states, cells, …).
constexpr size_t kX = 0;
constexpr size_t kStates = 5;
constexpr size_t kShared = 7;  // how many they have in common

// Of the first: (…, reverse, batch_sizes, mode, hidden_size, num_layers, has_biases, bidirectional,
// batch_first, train).
constexpr size_t kReverse = 7;
constexpr size_t kBatchSizes = 8;
constexpr size_t kMode = 9;
constexpr size_t kHasBiases = 12;
constexpr size_t kTrain = 15;
constexpr size_t kWorkspaceMade = 3;

// Of the second: (…, y, last_states, last_cells, dy, dlast_states, dlast_cells, …, workspace).
constexpr size_t kY = 7;
constexpr size_t kDy = 10;
constexpr size_t kWorkspaceUsed = 22;

/// A layer and its gradient, by number.
struct Layer {
  size_t forward;
  size_t backward;
  LstmShape shape;
};

class Finder {
 public:
  explicit Finder(const StepProgram& program) : program_(program), facts_(program) {}

  std::vector<Layer> all() const {
    std::vector<Layer> layers;
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      if (const auto layer = at_forward(i)) {
        layers.push_back(*layer);
      }
    }
    return layers;
  }

 private:
  std::optional<Layer> at_forward(size_t i) const {
    const Instruction& forward = program_.instructions[i];
    if (!has_name(forward, kForward) || !is_plain(forward)) {
      return std::nullopt;
    }
    const auto shape = shape_of(forward);
    const auto backward = gradient_of(forward);
    return shape && backward ? std::optional(Layer{i, *backward, *shape}) : std::nullopt;
  }

  /// One direction, with biases, on sequences of one length, in training.
  static bool is_plain(const Instruction& forward) {
    constexpr int64_t kLstm = 2;
    const std::vector<Argument>& given = forward.arguments;
    return is_constant(given[kReverse], 0) && is_constant(given[kMode], kLstm) &&
           is_constant(given[kHasBiases], 1) && is_constant(given[kTrain], 1) &&
           given[kBatchSizes].constant.isIntList() &&
           given[kBatchSizes].constant.toIntList().empty();
  }

  std::optional<LstmShape> shape_of(const Instruction& forward) const {
    const Slot* const x = slot_at(program_, forward.arguments, kX);
    const Slot* const states = slot_at(program_, forward.arguments, kStates);
    if (!is_plain_float(x) || x->sizes.size() != 3 || !is_plain_float(states)) {
      return std::nullopt;
    }
    const LstmShape shape = {x->sizes[0], x->sizes[1], x->sizes[2], states->sizes.back()};
    const bool fits = numel(*states) == shape.states() && can_run_lstm(shape) &&
                      are_plain_floats(program_, forward.arguments, {0, 1, 2, 3, 4, 5, 6}) &&
                      are_plain_floats(program_, forward.results, {0, 1, 2});
    return fits ? std::optional(shape) : std::nullopt;
  }

  /// The only one who sees what the layer keeps for it.
  std::optional<size_t> gradient_of(const Instruction& forward) const {
    const Result& workspace = forward.results[kWorkspaceMade];
    if (is_none(workspace) || facts_.escapes[storage_of(program_, workspace.slots[0])]) {
      return std::nullopt;
    }
    std::vector<size_t> users;
    for (size_t i = 0; i < program_.instructions.size(); ++i) {
      const Slot& whole = slot_of(program_, workspace.slots[0]);
      if (touches(program_, program_.instructions[i], whole)) {
        users.push_back(i);
      }
    }
    const bool are_two = users.size() == 2 && &program_.instructions[users[0]] == &forward;
    return are_two && is_gradient(program_.instructions[users[1]], forward)
               ? std::optional(users[1])
               : std::nullopt;
  }

  bool is_gradient(const Instruction& backward, const Instruction& forward) const {
    if (!has_name(backward, kBackward) ||
        backward.arguments[kWorkspaceUsed].slots != forward.results[kWorkspaceMade].slots ||
        backward.arguments[kY].slots != forward.results[0].slots) {
      return false;
    }
    for (size_t i = 0; i < kShared; ++i) {
      if (backward.arguments[i].slots != forward.arguments[i].slots) {
        return false;
      }
    }
    return are_plain_floats(program_, backward.results, {0, 1, 2, 3, 4, 5, 6});
  }

  const StepProgram& program_;
  StorageFacts facts_;
};

/// Tensors of random numbers for a layer, and what LibTorch makes of them.
class Example {
 public:
  Example(const LstmShape& shape, uint64_t seed)
      : shape_(shape), generator_(at::detail::createCPUGenerator(seed)) {
    constexpr double kWeights = 0.2;  // few gates open or close altogether
    given_ = {random({shape.steps, shape.batch, shape.inputs}, 1.0),
              random({shape.gates(), shape.inputs}, kWeights),
              random({shape.gates(), shape.hidden}, kWeights),
              random({shape.gates()}, kWeights),
              random({shape.gates()}, kWeights),
              random({shape.batch, shape.hidden}, 1.0),
              random({shape.batch, shape.hidden}, 1.0)};
    come_back_ = {random({shape.steps, shape.batch, shape.hidden}, 1.0),
                  random({shape.batch, shape.hidden}, 1.0),
                  random({shape.batch, shape.hidden}, 1.0)};
  }

  /// \param forward, backward  LibTorch's operators, with options
  bool agrees(const Instruction& forward, const Instruction& backward) const {
    const auto of_libtorch = run_libtorch(forward, backward);
    const auto of_ours = run_ours();
    return std::equal(of_ours.begin(), of_ours.end(), of_libtorch.begin(), &equal_bytes);
  }

 private:
  using Tensors = std::vector<at::Tensor>;

  at::Tensor random(at::IntArrayRef sizes, double deviation) {
    return at::empty(sizes, at::kFloat).normal_(0.0, deviation, generator_);
  }

  /// Calls an instruction's operator with these tensors in place of the first ones.
  static Tensors call(const Instruction& instruction,
                      const Tensors& first,
                      const at::Tensor& last = {}) {
    torch::jit::Stack stack(first.begin(), first.end());
    for (size_t i = first.size(); i < instruction.arguments.size(); ++i) {
      const bool is_tensor = instruction.arguments[i].kind == Argument::Kind::Tensor;
      stack.push_back(is_tensor ? last : instruction.arguments[i].constant);
    }
    const c10::AutoGradMode mode(instruction.needs_grad_mode);
    instruction.op.callBoxed(&stack);
    Tensors results;
    for (const c10::IValue& value : stack) {
      results.push_back(value.toTensor());
    }
    return results;
  }

  // y, the last states and cells, and the gradients.
  Tensors run_libtorch(const Instruction& forward, const Instruction& backward) const {
    Tensors all = call(forward, given_);
    const at::Tensor workspace = all.back();
    all.pop_back();
    Tensors arguments = given_;
    arguments.insert(arguments.end(), all.begin(), all.end());
    arguments.insert(arguments.end(), come_back_.begin(), come_back_.end());
    const Tensors gradients = call(backward, arguments, workspace);
    all.insert(all.end(), gradients.begin(), gradients.end());
    return all;
  }

  Tensors run_ours() const {
    const auto operator_of = [](const char* name) {
      Instruction instruction{c10::Dispatcher::singleton().findSchemaOrThrow(name, ""), {}, {}, {}};
      return instruction;
    };
    Tensors all = call(operator_of("rondo::lstm_layer"), given_);
    const at::Tensor kept = all.back();
    all.pop_back();
    Tensors arguments = come_back_;
    for (const size_t i : {0, 1, 2, 5, 6}) {
      arguments.push_back(given_[i]);
    }
    arguments.push_back(all.front());
    arguments.push_back(kept);
    const Tensors gradients = call(operator_of("rondo::lstm_layer_backward"), arguments);
    all.insert(all.end(), gradients.begin(), gradients.end());
    return all;
  }

  LstmShape shape_;
  at::Generator generator_;
  Tensors given_;
  Tensors come_back_;  // gradients
};

bool agrees(const LstmShape& shape, const Instruction& forward, const Instruction& backward) {
  constexpr int64_t kEnoughNumbers = int64_t{1} << 16;  // of y, that were compared
  constexpr int64_t kMostRounds = 16;
  const KernelsOnly scope;
  const int64_t numbers = shape.rows() * shape.hidden;
  const int64_t rounds = std::min(kEnoughNumbers / numbers + 1, kMostRounds);
  for (int64_t round = 0; round < rounds; ++round) {
    if (!Example(shape, static_cast<uint64_t>(round)).agrees(forward, backward)) {
      return false;
    }
  }
  return true;
}

/// Whether rondo's layer gives LibTorch's bits. Slow at first; remembered.
bool agrees_with_libtorch(const LstmShape& shape,
                          const Instruction& forward,
                          const Instruction& backward) {
  static std::mutex mutex;
  static std::map<std::vector<int64_t>, bool> known;
  const std::vector<int64_t> key = {shape.steps,
                                    shape.batch,
                                    shape.inputs,
                                    shape.hidden,
                                    at::get_num_threads(),
                                    at::globalContext().userEnabledMkldnn()};
  const std::lock_guard lock(mutex);
  const auto found = known.find(key);
  return found != known.end() ? found->second
                              : known.emplace(key, agrees(shape, forward, backward)).first->second;
}

void replace(StepProgram& program, const Layer& layer) {
  Instruction& forward = program.instructions[layer.forward];
  Instruction& backward = program.instructions[layer.backward];
  auto& dispatcher = c10::Dispatcher::singleton();
  forward.op = dispatcher.findSchemaOrThrow("rondo::lstm_layer", "");
  forward.needs_grad_mode = false;
  forward.arguments.resize(kShared);
  const LstmShape& shape = layer.shape;
  Slot& kept = program.slots[static_cast<size_t>(id_at(forward.results, kWorkspaceMade))];
  kept.dtype = at::kFloat;
  kept.offset = 0;
  kept.sizes = {shape.steps, LstmShape::kKept, shape.batch, shape.hidden};
  kept.strides = {LstmShape::kKept * shape.states(), shape.states(), shape.hidden, 1};
  backward.op = dispatcher.findSchemaOrThrow("rondo::lstm_layer_backward", "");
  std::vector<Argument> arguments;
  for (const size_t i : {kDy, kDy + 1, kDy + 2, kX, kX + 1, kX + 2, kStates, kStates + 1, kY}) {
    arguments.push_back(backward.arguments[i]);
  }
  arguments.push_back(backward.arguments[kWorkspaceUsed]);
  backward.arguments = std::move(arguments);
}

}  // namespace

StepProgram take_own_lstm_layers(StepProgram program) {
  for (const Layer& layer : Finder(program).all()) {
    if (agrees_with_libtorch(layer.shape,
                             program.instructions[layer.forward],
                             program.instructions[layer.backward])) {
      replace(program, layer);
    }
  }
  return program;
}

}  // namespace rondo
