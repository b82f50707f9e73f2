#pragma once

#include <string>

#include "cli/command_help.h"

namespace rondo {

/// The script with which a shell completes the commands, actions and options of `rondo`.
/// \param shell  "bash", "zsh" or "fish"
std::string completion(const std::string& shell, const CommandHelp& rondo);

}  // namespace rondo
