#pragma once

#include <exception>

namespace rondo {

/// What a program ends with that ends by this exception: 2 when the command line, the run file or
/// the code asks for what cannot be, also where a hook found that out; 1 otherwise.
int exit_code_of(const std::exception_ptr& error);

}  // namespace rondo
