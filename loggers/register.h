#pragma once

#include "core/registry.h"
#include "loggers/logger.h"

namespace rondo {

void register_csv_logger(Registry<Logger>& registry);
void register_in_memory_logger(Registry<Logger>& registry);
void register_jsonl_logger(Registry<Logger>& registry);
void register_progress_logger(Registry<Logger>& registry);
void register_record_logger(Registry<Logger>& registry);
void register_tensorboard_logger(Registry<Logger>& registry);

/// Adds the keys of LogFilter, which the options of all loggers have.
template <class Options>
void add_filter_keys(KeyTable<Options>& keys) {
  keys.key("log_steps",
           &Options::log_steps,
           "time between two values of training; absent: all log steps")
      .key("exclude", &Options::exclude, "globs of metrics that are left out");
}

/// Adds every logger that a config can name.
inline void register_builtin_loggers(Registry<Logger>& registry) {
  register_csv_logger(registry);
  register_in_memory_logger(registry);
  register_jsonl_logger(registry);
  register_progress_logger(registry);
  register_record_logger(registry);
  register_tensorboard_logger(registry);
}

}  // namespace rondo
