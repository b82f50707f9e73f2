#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <string>

namespace rondo {

/// Sets whether operators on GPUs give the same bits each time: LibTorch's and cuDNN's switches,
/// and cuBLAS's workspace (`CUBLAS_WORKSPACE_CONFIG`, unless the environment has it). For the whole
/// process, and before cuBLAS is used for the first time. An operator without such a form warns.
/// New tensors are not filled, as LibTorch otherwise does with these switches.
/// Source: PyTorch's notes on reproducibility.
void use_deterministic_kernels(bool is_on);

/// What the bits of a GPU's operators depend on: its name, the versions of driver, CUDA and cuDNN,
/// the switches above, TF32 and cuBLAS's workspace. "" for the CPU.
std::string gpu_environment(c10::Device device);

/// The most memory of the device that LibTorch has held since the process began, in bytes. Nothing
/// for the CPU, and in a build without CUDA.
std::optional<int64_t> peak_device_bytes(c10::Device device);

}  // namespace rondo
