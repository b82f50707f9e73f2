#include "optim/schedules/lambda_lr.h"

#include "core/error.h"

namespace rondo {

LambdaLR::LambdaLR(const Options& options)
    : Scheduler(options.target), function_(options.function) {
  if (!function_) {
    throw UsageError("LambdaLR.function: expected a function, got none");
  }
}

}  // namespace rondo
