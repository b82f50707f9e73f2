#pragma once

#include <string>

namespace rondo {

/// The processor whose kernels OpenBLAS uses, such as "Haswell"; "" without such an OpenBLAS.
/// \param libraries  what `dlopen` returned, or RTLD_DEFAULT for all that are loaded
std::string openblas_core(void* libraries);

/// OpenBLAS's name for kernels that suit this processor better than `core`; "" when it knows it. An
/// OpenBLAS that is older than the processor takes it for one of 2004. The environment variable
/// OPENBLAS_CORETYPE corrects that, when it is set before the process starts.
std::string better_openblas_core(const std::string& core);

}  // namespace rondo
