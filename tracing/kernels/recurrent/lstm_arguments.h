#pragma once

#include <cstddef>

namespace rondo {

// Places of the arguments and results of the operators in lstm_operators.h.

/// Of rondo::lstm_layer.
namespace lstm_forward {

enum : size_t { X, InputWeight, StateWeight, InputBias, StateBias, States, Cells };

enum : size_t { Y, LastStates, LastCells, Kept };

}  // namespace lstm_forward

/// Of rondo::lstm_layer_backward and rondo::lstm_table_backward.
namespace lstm_backward {

enum : size_t { Dy, DLastStates, DLastCells, X, InputWeight, StateWeight, States, Cells, Y, Kept };

// Of the gradient down to a table, which is in the place of X, two more.
inline constexpr size_t kNumbers = Kept + 1;
inline constexpr size_t kPadding = kNumbers + 1;

enum : size_t { Dx, DInputWeight, DStateWeight, DInputBias, DStateBias, DStates, DCells };

}  // namespace lstm_backward

}  // namespace rondo
