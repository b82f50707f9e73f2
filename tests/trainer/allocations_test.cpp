// Counts what a step allocates on the training thread, once it is replayed.

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <execinfo.h>
#include <torch/version.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "tracing/onednn/convolution.h"
#include "trainer/steady_fit.h"

TEST_SUITE_BEGIN("trainer/allocations");

using namespace rondo;
using namespace rondo::test;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

TEST_CASE("allocations are counted without sanitizers only") {
  MESSAGE("skipped: the sanitizer has the allocator");
}

#else

namespace {

/// Who is at work when memory is asked for.
enum class Owner { Rondo, LibTorch, MathLibrary };

struct Counter {
  bool is_on = false;
  int64_t of[3] = {0, 0, 0};
  int last_step = -1;  // in which something was counted

  int64_t all() const { return of[0] + of[1] + of[2]; }
};

thread_local Counter counter;

/// LibTorch's GELU is oneDNN's, for which it wraps its tensors.
bool is_around_onednn(const char* function) {
  return function != nullptr && std::strstr(function, "gelu") != nullptr;
}

/// The innermost of the libraries that are known: oneDNN and BLAS allocate for themselves,
/// operators of LibTorch that have no kernel of rondo's own allocate in LibTorch.
Owner owner_of_this_call() {
  void* frames[64];
  const int depth = ::backtrace(frames, 64);
  bool is_of_libtorch = false;
  for (int i = 0; i < depth; ++i) {
    Dl_info info{};
    if (::dladdr(frames[i], &info) == 0 || info.dli_fname == nullptr) {
      continue;
    }
    const std::string file = info.dli_fname;
    if (file.find("libdnnl") != std::string::npos || file.find("blas") != std::string::npos ||
        is_around_onednn(info.dli_sname)) {
      return Owner::MathLibrary;
    }
    is_of_libtorch = is_of_libtorch || file.find("libtorch") != std::string::npos;
  }
  return is_of_libtorch ? Owner::LibTorch : Owner::Rondo;
}

void note() {
  if (counter.is_on) {
    counter.is_on = false;  // looking at the stack may allocate
    ++counter.of[static_cast<int>(owner_of_this_call())];
    counter.is_on = true;
  }
}

}  // namespace

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) {
  note();
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
  note();
  return __libc_calloc(count, size);
}

void* realloc(void* old, size_t size) {
  note();
  return __libc_realloc(old, size);
}

int posix_memalign(void** result, size_t alignment, size_t size) {
  note();
  *result = __libc_memalign(alignment, size);
  return *result == nullptr ? ENOMEM : 0;
}

void* aligned_alloc(size_t alignment, size_t size) {
  note();
  return __libc_memalign(alignment, size);
}

void* memalign(size_t alignment, size_t size) {
  note();
  return __libc_memalign(alignment, size);
}
}

namespace {

/// Of some steps, once everything has been tried.
Counter allocations_of(const RunConfig& run, int steps) {
  SteadyFit fit(run);
  counter = Counter();
  counter.is_on = true;
  for (int i = 0; i < steps; ++i) {
    const int64_t before = counter.all();
    fit.step();
    counter.last_step = counter.all() > before ? i : counter.last_step;
  }
  counter.is_on = false;
  return counter;
}

// What LibTorch 2 allocates in a step: its log softmax the sums and maxima of rows, and the norm of
// all gradients' norms, whose order of summation is not rondo's.
constexpr int kOfLogSoftmax = TORCH_VERSION_MAJOR >= 2 ? 2 : 0;
constexpr int kOfNorm = TORCH_VERSION_MAJOR >= 2 ? 6 : 0;

}  // namespace

TEST_CASE("a replayed step of the quickstart allocates nothing, what oneDNN needs aside") {
  const TempDir dir;
  constexpr int kSteps = 20;
  const Counter counted =
      allocations_of(recipe_without_events("quickstart.toml", dir, /*prefetch=*/8), kSteps);
  CAPTURE(counted.last_step);
  CHECK(counted.of[static_cast<int>(Owner::Rondo)] == 0);
  CHECK(counted.of[static_cast<int>(Owner::LibTorch)] <= kOfLogSoftmax * kSteps);
}

TEST_CASE("around a replayed step nothing is allocated, what LibTorch's operators need aside") {
  if (std::getenv("RONDO_DATA") == nullptr) {
    MESSAGE("skipped: RONDO_DATA is not set");
    return;
  }
  for (const char* name : {"mnist_cnn.toml", "shakespeare_gpt.toml"}) {
    CAPTURE(std::string(name));
    const TempDir dir;
    constexpr int kSteps = 2;
    const Counter counted =
        allocations_of(recipe_without_events(name, dir, /*prefetch=*/8), kSteps);
    CAPTURE(counted.of[static_cast<int>(Owner::LibTorch)]);
    CAPTURE(counted.of[static_cast<int>(Owner::MathLibrary)]);
    CAPTURE(counted.last_step);
    CHECK(counted.of[static_cast<int>(Owner::Rondo)] == 0);
    // All other operators have kernels of rondo's own.
    CHECK((channel_block() == 0 ||
           counted.of[static_cast<int>(Owner::LibTorch)] <= (kOfLogSoftmax + kOfNorm) * kSteps));
  }
}

#endif

TEST_SUITE_END();
