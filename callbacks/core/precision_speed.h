#pragma once

#include <string>

namespace rondo {

/// A small network that stands for a run's model.
enum class SpeedProbe { Linear, Convolutional };

/// How many times as long forward and backward of the network take on the CPU under bfloat16
/// autocast as in float32, measured now with this thread count; some milliseconds.
double relative_time_of_bf16(SpeedProbe probe);

/// What a run says of it; "" where bfloat16 is not slower.
std::string slowness_note(const std::string& dtype, SpeedProbe probe, double relative_time);

}  // namespace rondo
