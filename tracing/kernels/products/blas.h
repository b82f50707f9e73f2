#pragma once

#include <cstdint>

namespace rondo::blas {

// Matrix products in single precision of the libraries that LibTorch was linked with, found in the
// running process: the same function gives the same bits.

/// Of BLAS; column by column, as Fortran has it.
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

/// Of oneDNN; row by row. \return 0 when it is done
using OneDnnSgemm = int (*)(char transpose_a,
                            char transpose_b,
                            int64_t m,
                            int64_t n,
                            int64_t k,
                            float alpha,
                            const float* a,
                            int64_t lda,
                            const float* b,
                            int64_t ldb,
                            float beta,
                            float* c,
                            int64_t ldc);

/// Null when LibTorch hides its BLAS.
Sgemm sgemm();

/// Null when LibTorch has no oneDNN, or hides it.
OneDnnSgemm onednn_sgemm();

}  // namespace rondo::blas
