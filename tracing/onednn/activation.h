#pragma once

#include <cstdint>
#include <memory>

#include "tracing/onednn/onednn_call.h"

namespace rondo {

// Functions of each of `count` numbers by oneDNN, with the bits that they have within its recurrent
// layers. They need `has_onednn()`. Tensors: argument and result, which may be the same.

/// 1 / (1 + exp(-x))
std::unique_ptr<OneDnnCall> prepare_sigmoid(int64_t count);

std::unique_ptr<OneDnnCall> prepare_tanh(int64_t count);

}  // namespace rondo
