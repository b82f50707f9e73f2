#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/types.h>

#include <vector>

#include "tracing/kernel_checks.h"
#include "tracing/kernels/recurrent/lstm_layer.h"

namespace rondo::test {

using Tensors = std::vector<at::Tensor>;

constexpr const char* kOwn = "rondo::lstm_layer";
constexpr const char* kOwnGradient = "rondo::lstm_layer_backward";

/// What a layer is given, and what comes back to it.
struct Given {
  at::Tensor x;
  Tensors weights;
  at::Tensor states;
  at::Tensor cells;
  Tensors come_back;  ///< gradients of the result, the last states and the last cells

  Given(const LstmShape& s, int seed)
      : x(random({s.steps, s.batch, s.inputs}, seed)),
        weights{random({s.gates(), s.inputs}, seed + 1) * 0.2,
                random({s.gates(), s.hidden}, seed + 2) * 0.2,
                random({s.gates()}, seed + 3),
                random({s.gates()}, seed + 4)},
        states(random({s.batch, s.hidden}, seed + 5)),
        cells(random({s.batch, s.hidden}, seed + 6)),
        come_back{random({s.steps, s.batch, s.hidden}, seed + 7),
                  random({s.batch, s.hidden}, seed + 8),
                  random({s.batch, s.hidden}, seed + 9)} {}

  explicit Given(const Batch& batch)
      : x(batch["x"]),
        weights{batch["w0"], batch["w1"], batch["w2"], batch["w3"]},
        states(batch["states"]),
        cells(batch["cells"]),
        come_back{batch["dy"], batch["dstates"], batch["dcells"]} {}

  LstmShape shape() const { return {x.size(0), x.size(1), x.size(2), states.size(1)}; }
};

inline Tensors call(const char* name, torch::jit::Stack stack) {
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(&stack);
  Tensors results;
  for (const c10::IValue& value : stack) {
    results.push_back(value.toTensor());
  }
  return results;
}

/// A batch of what is given, by name.
inline Batch batch_of(const Given& g) {
  return {{"x", g.x},
          {"w0", g.weights[0]},
          {"w1", g.weights[1]},
          {"w2", g.weights[2]},
          {"w3", g.weights[3]},
          {"states", g.states},
          {"cells", g.cells},
          {"dy", g.come_back[0]},
          {"dstates", g.come_back[1]},
          {"dcells", g.come_back[2]}};
}

}  // namespace rondo::test
