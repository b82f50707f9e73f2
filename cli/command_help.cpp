#include "cli/command_help.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>

namespace rondo {

namespace {

/// The value's name as help shows it, without what CLI11 adds about its range.
std::string value_name(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) {
    return "";
  }
  const std::string name = option.get_type_name();
  return name.substr(0, name.find(':'));
}

ArgumentHelp argument_help(const CLI::Option& option) {
  ArgumentHelp help;
  help.is_positional = option.get_positional();
  if (!option.get_lnames().empty()) {
    help.long_name = "--" + option.get_lnames().front();
  }
  if (!option.get_snames().empty()) {
    help.short_name = "-" + option.get_snames().front();
  }
  help.value = value_name(option);
  help.doc = option.get_description();
  help.default_value = option.get_default_str();
  help.is_required = option.get_required();
  help.is_repeated = option.get_expected_max() > 1;
  return help;
}

}  // namespace

CommandHelp help_of(const CLI::App& app) {
  CommandHelp help{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    help.arguments.push_back(argument_help(*option));
  }
  for (const CLI::App* command : app.get_subcommands({})) {
    help.commands.push_back(help_of(*command));
  }
  return help;
}

}  // namespace rondo
