#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace rondo {

/// While it lives, operators of this thread go straight to their kernels: what autograd and
/// autocast do is recorded in the program that is run.
struct KernelsOnly {
  c10::AutoGradMode no_grad{false};
  at::AutoDispatchBelowADInplaceOrView autograd;
  c10::impl::ExcludeDispatchKeyGuard autocast{c10::autocast_dispatch_keyset};
};

}  // namespace rondo
