#include "core/parallel.h"

#include <ATen/Parallel.h>

namespace rondo::detail {

void parallel_for(int64_t count,
                  int64_t grain,
                  void (*call)(const void* body, int64_t begin, int64_t end),
                  const void* body) {
  at::parallel_for(0, count, grain, [=](int64_t begin, int64_t end) { call(body, begin, end); });
}

}  // namespace rondo::detail
