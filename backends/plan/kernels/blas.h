#pragma once

#include <cstdint>

namespace rondo::blas {

/// The single-precision matrix product of the BLAS that LibTorch was linked with, which is found in
/// the running process: the same function gives the same bits. Column by column, as Fortran has it.
using Sgemm = void (*)(const char* transpose_a,
                       const char* transpose_b,
                       const int* m,
                       const int* n,
                       const int* k,
                       const float* alpha,
                       const float* a,
                       const int* lda,
                       const float* b,
                       const int* ldb,
                       const float* beta,
                       float* c,
                       const int* ldc);

/// Null when LibTorch hides its BLAS.
Sgemm sgemm();

}  // namespace rondo::blas
