#include "cli/command_help.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>
#include <string>

namespace rondo {

namespace {

/// The value's name as help shows it, without what CLI11 adds about its range.
std::string value_name(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) {
    return "";
  }
  const std::string type = option.get_type_name();
  const std::string name = type.substr(0, type.find(':'));
  return name == "INT" || name == "FLOAT" ? "N" : name;
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

/// Shows arguments as manual pages and shell completion do.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    return is_positional ? value_name(*option) : Formatter::make_option_name(option, false);
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    const ArgumentHelp help = argument_help(*option);
    const bool has_value = !help.is_positional && !help.value.empty();
    return (has_value ? " " + help.value : "") + (help.is_repeated ? " ..." : "");
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    const ArgumentHelp help = argument_help(*option);
    return help.doc + (help.default_value.empty() ? "" : " (default: " + help.default_value + ")");
  }

  std::string make_option_usage(const CLI::Option* option) const override {
    const ArgumentHelp help = argument_help(*option);
    const std::string name = help.value + (help.is_repeated ? "..." : "");
    return help.is_required ? name : "[" + name + "]";
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_format() {
  return std::make_shared<HelpFormatter>();
}

std::string missing_argument(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_required() && option->count() == 0) {
      const ArgumentHelp help = argument_help(*option);
      return help.is_positional ? help.value : help.long_name;
    }
  }
  return "";
}

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
