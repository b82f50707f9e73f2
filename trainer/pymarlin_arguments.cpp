#include "trainer/pymarlin_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "core/error.h"
#include "core/glob.h"

namespace rondo::pymarlin {

namespace {

void require_positive(const char* name, int64_t value) {
  if (value < 1) {
    throw UsageError(fmt::format("{}: expected an integer >= 1, got {}", name, value));
  }
}

void require_known(const char* name,
                   const std::string& value,
                   const std::vector<std::string>& known) {
  if (std::count(known.begin(), known.end(), value) == 0) {
    throw UsageError(fmt::format("{}: unknown \"{}\"{}", name, value, suggestion(value, known)));
  }
}

}  // namespace

void check(const TrainerArguments& arguments) {
  require_positive("epochs", arguments.epochs);
  require_positive("train_batch_size", arguments.train_batch_size);
  require_positive("gpu_batch_size_limit", arguments.gpu_batch_size_limit);
  require_positive("val_batch_size", arguments.val_batch_size);
  require_positive("checkpointer_args.period", arguments.checkpointer_args.period);
  require_positive("stats_args.log_steps", arguments.stats_args.log_steps);
  require_positive("stats_args.log_model_steps", arguments.stats_args.log_model_steps);
  try {
    const std::regex compiled(arguments.stats_args.exclude_list);
  } catch (const std::regex_error& error) {
    throw UsageError(fmt::format("stats_args.exclude_list: \"{}\" is no regular expression: {}",
                                 arguments.stats_args.exclude_list,
                                 error.what()));
  }
  if (arguments.clip_grads && !(arguments.max_grad_norm > 0.0)) {
    throw UsageError(
        fmt::format("max_grad_norm: expected a number > 0, got {}", arguments.max_grad_norm));
  }
  for (const std::string& writer : arguments.writers) {
    require_known("writers", writer, {"stdout", "aml", "tensorboard"});
  }
  require_known("log_level", arguments.log_level, {"DEBUG", "INFO", "WARNING", "ERROR"});
  const std::string& backend = arguments.backend;
  if (backend == "sp-dp" || backend == "ddp-dp") {
    throw UsageError("backend: rondo has no differential privacy; take \"sp\" or \"ddp\"");
  }
  if (backend == "sp-amp-apex" || backend == "ddp-amp-apex") {
    throw UsageError("backend: there is no Apex here; take \"sp-amp\" or \"ddp-amp\"");
  }
  require_known("backend", backend, {"sp", "sp-amp", "ddp", "ddp-amp"});
}

int64_t train_step_batch_size(const TrainerArguments& arguments, int64_t world_size) {
  const int64_t limit = arguments.gpu_batch_size_limit;
  int64_t size = arguments.train_batch_size / world_size;
  if (size == 0) {
    throw UsageError(fmt::format(
        "train_batch_size = {} over {} ranks gives a step batch of 0: take fewer ranks or a larger "
        "batch",
        arguments.train_batch_size,
        world_size));
  }
  if (size > limit && size % limit == 0) {
    return limit;
  }
  while (size > limit) {
    size /= 2;
  }
  return size;
}

int64_t gradient_accumulation(const TrainerArguments& arguments, int64_t world_size) {
  return arguments.train_batch_size / world_size / train_step_batch_size(arguments, world_size);
}

}  // namespace rondo::pymarlin
