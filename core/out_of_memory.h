#pragma once

#include <exception>

namespace rondo {

/// Whether memory ran out, on the host or on a device: whether the exception, or one nested in it,
/// is an allocator's.
bool is_out_of_memory(const std::exception_ptr& error);

}  // namespace rondo
