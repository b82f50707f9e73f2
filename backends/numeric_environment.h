#pragma once

#include <c10/core/Device.h>

#include <string>

#include "core/state_dict.h"

namespace rondo {

/// What the bits of a run depend on besides its code and data. Fixed before the first step, saved
/// in each checkpoint.
struct NumericEnvironment {
  std::string libtorch;        ///< version, such as "1.13.1"
  std::string cpu_capability;  ///< instruction set of LibTorch's kernels, such as "AVX2"
  int threads = 1;             ///< of tensor operators
  bool onednn = false;         ///< whether oneDNN's kernels may be chosen
  std::string
      blas;  ///< file of the BLAS library, such as "openblas-openmp/libblas.so.3"; "" unknown
  std::string blas_core;  ///< processor whose kernels OpenBLAS uses, such as "Haswell"; "" unknown
  std::string gpu;        ///< see gpu_environment; "" on the CPU
};

/// That of this process, now.
NumericEnvironment current_environment(c10::Device device = c10::kCPU);

StateDict to_state(const NumericEnvironment& environment);

/// \throws CheckpointError  when an entry is missing or of another kind
NumericEnvironment environment_from(const StateDict& state);

/// What differs, such as `threads: 2 in the checkpoint, 1 here`, one a line; "" when nothing does.
std::string difference(const NumericEnvironment& saved, const NumericEnvironment& here);

/// Sets LibTorch's thread count when it is another one (setting it costs 5-20 ms even when it is
/// not). \param threads  >= 1
void use_threads(int threads);

}  // namespace rondo
