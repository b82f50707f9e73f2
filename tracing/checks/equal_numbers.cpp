#include "tracing/checks/equal_numbers.h"

#include "core/state_dict.h"

namespace rondo {

bool equal_numbers(const at::Tensor& a, const at::Tensor& b) {
  if (equal_bytes(a, b)) {
    return true;
  }
  if (!a.defined() || !b.defined() || !a.is_floating_point() || a.sizes() != b.sizes() ||
      a.device().type() != b.device().type()) {
    return false;
  }
  const at::Tensor nans = a.detach().isnan();
  return nans.equal(b.detach().isnan()) &&
         equal_bytes(a.detach().masked_fill(nans, 0), b.detach().masked_fill(nans, 0));
}

}  // namespace rondo
