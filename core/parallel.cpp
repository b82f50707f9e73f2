#include "core/parallel.h"

#include <ATen/Parallel.h>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace rondo {

namespace detail {

void parallel_for(int64_t count,
                  int64_t grain,
                  void (*call)(const void* body, int64_t begin, int64_t end),
                  const void* body) {
  at::parallel_for(0, count, grain, [=](int64_t begin, int64_t end) { call(body, begin, end); });
}

}  // namespace detail

int threads_for(int64_t elements) {
  const int64_t worth_it = at::in_parallel_region() ? 1 : elements / kElementsOfThread;
  return static_cast<int>(std::clamp<int64_t>(worth_it, 1, at::get_num_threads()));
}

#if defined(_OPENMP)

OnThisThread::OnThisThread() : threads_before_(omp_get_max_threads()) {
  omp_set_num_threads(1);
}

OnThisThread::~OnThisThread() {
  omp_set_num_threads(threads_before_);
}

#else

OnThisThread::OnThisThread() : threads_before_(1) {}

OnThisThread::~OnThisThread() {
  static_cast<void>(threads_before_);
}

#endif

}  // namespace rondo
