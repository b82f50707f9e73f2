#pragma once

#include <exception>
#include <string>

#include "core/error.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

namespace rondo::test {

/// What a Trainer refuses these options with, with its causes; "" when it takes them.
inline std::string message_of_setup(const TrainerOptions& options) {
  try {
    const Trainer trainer(options, quiet_log());
  } catch (const std::exception&) {
    return describe(std::current_exception());
  }
  return "";
}

}  // namespace rondo::test
