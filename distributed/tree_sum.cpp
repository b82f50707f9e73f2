#include <ATen/core/grad_mode.h>

#include "core/require.h"
#include "distributed/communicator.h"

namespace rondo {

void add_part(at::Tensor& into, const at::Tensor& other) {
  const at::NoGradGuard no_grad;
  if (into.scalar_type() == at::kBool) {
    into.logical_or_(other);
  } else {
    into.add_(other);
  }
}

void tree_sum(std::vector<at::Tensor>& parts) {
  const bool is_power_of_two = !parts.empty() && (parts.size() & (parts.size() - 1)) == 0;
  detail::require(is_power_of_two, "tree_sum: parts", "as many as a power of two", parts.size());
  for (size_t apart = 1; apart < parts.size(); apart *= 2) {
    for (size_t i = 0; i < parts.size(); i += 2 * apart) {
      add_part(parts[i], parts[i + apart]);
    }
  }
}

}  // namespace rondo
