#pragma once

#include <string>

#include "cli/command_help.h"

namespace rondo {

/// rondo(1): what the program is, and a reference to the page of each command. troff for `man`.
std::string man_page(const CommandHelp& rondo);

/// The page of a command, such as rondo-fit(1).
std::string man_page(const CommandHelp& rondo, const CommandHelp& command);

}  // namespace rondo
