#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <vector>

namespace rondo::test {

/// Arguments of one call, in the order of the schema.
using SampleArguments = std::vector<c10::IValue>;

/// Arguments to call an operator with: those of its family, then guesses by the types and names of
/// its schema, in several shapes, layouts and dtypes. Not all of them suit it: a call may throw, or
/// end the process. Made anew each time, with the same numbers.
std::vector<SampleArguments> sample_arguments(const c10::FunctionSchema& schema);

}  // namespace rondo::test
