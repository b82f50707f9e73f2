#pragma once

#include <string>

namespace rondo {

/// The processor whose kernels a BLAS uses, such as "Haswell"; "" for one that is no OpenBLAS, or
/// does not tell.
/// \param library  what `dlopen` returned; null: none
std::string openblas_core(void* library);

/// OpenBLAS's name for kernels that suit this processor better than `core`; "" when it knows it. An
/// OpenBLAS that is older than the processor takes it for one of 2004. The environment variable
/// OPENBLAS_CORETYPE corrects that, when it is set before the process starts.
std::string better_openblas_core(const std::string& core);

}  // namespace rondo
