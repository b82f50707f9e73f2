#pragma once

#include <string>

#include "core/log.h"

namespace rondo {

/// What matters of a BLAS.
struct BlasFacts {
  bool is_optimized = true;      ///< OpenBLAS, MKL or BLIS, not the reference implementation
  bool has_own_threads = false;  ///< a pool beside the one of LibTorch
  std::string better_core = {};  ///< OpenBLAS's name for kernels that suit this processor, which it
                                 ///< takes for one of 2004; "" when it knows it
};

/// \param library  its handle, as `blas_library` has it; null for the one that LibTorch brings, of
///                 which nothing is wrong
BlasFacts blas_facts(void* library);

/// What to change, and how; "" when nothing need be.
/// \param threads  of tensor operators
std::string blas_advice(const BlasFacts& facts, int threads);

/// Warns of what should be changed in this process, of each thing once.
void warn_of_blas(int threads, const TextLog& log);

}  // namespace rondo
