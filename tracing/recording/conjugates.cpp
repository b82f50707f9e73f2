#include "tracing/recording/conjugates.h"

#include <ATen/ops/_conj.h>
#include <ATen/ops/conj_physical.h>
#include <ATen/ops/imag.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <vector>

#include "tracing/recording/objection.h"
#include "tracing/recording/whole_composites.h"

namespace rondo {

namespace {

using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;

/// Memory of this thread's conjugates that became tensors, as long as it lives.
std::vector<WeakStorage>& conjugates() {
  thread_local std::vector<WeakStorage> storages;
  return storages;
}

bool is_conjugate(const at::Tensor& tensor) {
  const std::vector<WeakStorage>& known = conjugates();
  return tensor.has_storage() && std::any_of(known.begin(), known.end(), [&](const auto& storage) {
           return !storage.expired() &&
                  storage._unsafe_get_target() == tensor.storage().unsafeGetStorageImpl();
         });
}

void remember(const at::Tensor& conjugate) {
  std::vector<WeakStorage>& known = conjugates();
  known.erase(
      std::remove_if(
          known.begin(), known.end(), [](const WeakStorage& storage) { return storage.expired(); }),
      known.end());
  known.push_back(conjugate.storage().getWeakStorageImpl());
}

/// Kernels keep their views.
bool is_in_kernel() {
  return c10::impl::tls_local_dispatch_key_set().excluded_.has(c10::DispatchKey::Fake);
}

}  // namespace

at::Tensor conj_as_tensor(const at::Tensor& x) {
  const c10::impl::ExcludeDispatchKeyGuard as_written(kWholeComposites);
  if (is_in_kernel()) {
    return at::_conj(x);
  }
  at::Tensor conjugate = at::conj_physical(x);
  remember(conjugate);
  return conjugate;
}

at::Tensor imag_as_tensor(const at::Tensor& x) {
  const c10::impl::ExcludeDispatchKeyGuard as_written(kWholeComposites);
  at::Tensor imag = at::imag(x);
  return !is_in_kernel() && is_conjugate(x) ? imag.clone() : imag;
}

void object_to_write_of_conjugate(const at::Tensor& tensor) {
  if (is_conjugate(tensor)) {
    throw Objection{"wrote into a conjugate, which is a view of another tensor",
                    "write into that one, or into a copy (conj_physical)"};
  }
}

}  // namespace rondo
