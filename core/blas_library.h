#pragma once

#include <string>

namespace rondo {

/// The library whose `sgemm_` this process calls, LibTorch and rondo alike.
struct BlasLibrary {
  std::string path;  ///< of its file, links followed

  /// For `dlsym`, which then also searches what it was linked with: Debian's libblas.so.3 of
  /// OpenBLAS has its kernels in libopenblas.so.0.
  void* handle = nullptr;
};

/// Fields are empty when LibTorch brings its own. Another BLAS may be loaded beside this one:
/// Debian's liblapack.so.3 loads OpenBLAS also where libblas.so.3 is the reference implementation.
const BlasLibrary& blas_library();

}  // namespace rondo
