#include "backends/gpu_environment.h"

#include <cstdlib>

#include <ATen/Context.h>

#include "core/torch_compat.h"

#ifdef RONDO_HAS_CUDA
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>
#endif

namespace rondo {

namespace {

#ifdef RONDO_HAS_CUDA
std::string name_and_versions(c10::Device device) {
  int driver = 0;
  int runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  return std::string(at::cuda::getDeviceProperties(device.index())->name) + ", driver for CUDA " +
         std::to_string(driver) + ", CUDA " + std::to_string(runtime) + ", cuDNN " +
         std::to_string(at::detail::getCUDAHooks().versionCuDNN());
}

std::optional<int64_t> peak_on(c10::Device device) {
  constexpr size_t kOfAll = 0;  // blocks of any size
  return c10::cuda::CUDACachingAllocator::getDeviceStats(device.index())
      .reserved_bytes[kOfAll]
      .peak;
}
#else
std::string name_and_versions(c10::Device device) {
  return c10::DeviceTypeName(device.type(), /*lower_case=*/true);
}

std::optional<int64_t> peak_on(c10::Device) {
  return std::nullopt;
}
#endif

}  // namespace

void use_deterministic_kernels(bool is_on) {
  at::Context& context = at::globalContext();
  context.setDeterministicAlgorithms(is_on, /*warn_only=*/true);
  context.setDeterministicCuDNN(is_on);
  context.setBenchmarkCuDNN(false);  // it would choose by the clock
  compat::fill_new_tensors(false);
  if (is_on) {
    ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  }
}

std::string gpu_environment(c10::Device device) {
  if (device.is_cpu()) {
    return "";
  }
  const at::Context& context = at::globalContext();
  const bool has_tf32 = context.float32MatmulPrecision() != at::Float32MatmulPrecision::HIGHEST;
  const char* const workspace = std::getenv("CUBLAS_WORKSPACE_CONFIG");
  return name_and_versions(device) +
         (context.deterministicCuDNN() ? ", deterministic kernels" : ", any kernels") +
         (has_tf32 ? ", TF32" : "") + (context.allowTF32CuDNN() ? ", TF32 in convolutions" : "") +
         ", cuBLAS workspace " + (workspace != nullptr ? workspace : "default");
}

std::optional<int64_t> peak_device_bytes(c10::Device device) {
  return device.is_cuda() ? peak_on(device) : std::nullopt;
}

}  // namespace rondo
