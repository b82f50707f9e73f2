#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace rondo {

/// Below autograd and out of the recording: what the recorder itself does with tensors.
struct Unrecorded {
  c10::impl::ExcludeDispatchKeyGuard recording{c10::DispatchKey::Fake};
  at::AutoDispatchBelowADInplaceOrView autograd;
};

}  // namespace rondo
