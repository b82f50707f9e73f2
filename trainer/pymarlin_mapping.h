#pragma once

#include <string>
#include <vector>

#include "core/config_value.h"
#include "trainer/pymarlin_arguments.h"

namespace rondo::pymarlin {

/// A key of `[trainer.init]` that an argument of PyMarlin's stands for.
struct MappedKey {
  std::string argument;           ///< such as "stats_args.log_steps"
  std::vector<std::string> path;  ///< such as {"logging", "log_steps"}
  ConfigValue value;
  bool is_optional = false;  ///< rondo's default stays where nobody gave the argument
};

/// What arguments are in rondo's words, but for the directory of the run and the sizes of batches,
/// which loaders have.
std::vector<MappedKey> mapped_keys(const TrainerArguments& arguments);

}  // namespace rondo::pymarlin
