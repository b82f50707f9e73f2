#pragma once

#include <string>

#include "core/named_tensor.h"

namespace rondo::detail {

/// Tensors as the bytes of an .npz file, a zip archive of .npy files. bfloat16 becomes float32.
/// Source: numpy.lib.format, version 1.0, and PKWARE's APPNOTE.TXT, stored entries.
std::string npz_of(const NamedTensors& tensors);

}  // namespace rondo::detail
