#include "core/low_rank.h"

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace rondo {

// In the weight's own precision also where the layer computes in another one: merged weights have
// the bytes of those that were trained.
at::Tensor with_low_rank(const at::Tensor& weight,
                         const at::Tensor& a,
                         const at::Tensor& b,
                         const at::Tensor& scale) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  return weight.add(b.mm(a).mul(scale).view(weight.sizes()));
}

}  // namespace rondo
