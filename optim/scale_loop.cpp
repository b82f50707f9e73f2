#include "optim/internal/scale_loop.h"

#include "core/vector_loop.h"

namespace rondo::detail {

namespace {

template <class T>
struct ScaledElement {
  T by;
  T* elements;

  RONDO_INLINE void operator()(int64_t i) const { elements[i] = elements[i] * by; }
};

}  // namespace

template <class T>
void scale_loop(T by, T* elements, int64_t count) {
  vector_loop(ScaledElement<T>{by, elements}, count);
}

template void scale_loop(float, float*, int64_t);
template void scale_loop(double, double*, int64_t);

}  // namespace rondo::detail
