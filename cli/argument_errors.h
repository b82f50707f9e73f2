#pragma once

#include <string>
#include <string_view>

#include "cli/command_line.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace rondo {

inline constexpr int kUsageError = 2;

/// Ends the program with the exit code for bad usage.
Exit usage_error(std::string_view program, std::string_view what);

bool is_option(const std::string& argument);

/// What is wrong with the name of a command of rondo, or of an action of a command.
std::string wrong_name(const CLI::App& app, const char* kind, std::string_view name);

/// Says which argument is one too many, and for an option which one may have been meant.
std::string unexpected_argument(const CLI::App& app);

/// Says what is wrong with arguments that CLI11 refused, in rondo's words where they tell more.
Exit refused(const CLI::App& root, const CLI::ParseError& error);

}  // namespace rondo
