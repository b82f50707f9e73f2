#include "cli/argument_errors.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_help.h"
#include "core/glob.h"

namespace rondo {

Exit usage_error(std::string_view program, std::string_view what) {
  return {kUsageError, fmt::format("{0}: {1}\nSee `{0} --help`.\n", program, what), true};
}

bool is_option(const std::string& argument) {
  return argument.rfind("-", 0) == 0;
}

std::string wrong_name(const CLI::App& app, const char* kind, std::string_view name) {
  std::vector<std::string> names;
  for (const CLI::App* known : app.get_subcommands({})) {
    names.push_back(known->get_name());
  }
  const std::string what = name.empty() ? fmt::format("expected the name of the {}", kind)
                                        : fmt::format("unknown {} \"{}\"", kind, name);
  return what + suggestion(name, names);
}

std::string unexpected_argument(const CLI::App& app) {
  const std::vector<std::string> rest = app.remaining();
  const auto option = std::find_if(rest.begin(), rest.end(), is_option);
  if (option == rest.end()) {
    return fmt::format("unexpected argument \"{}\"", rest.empty() ? "" : rest.front());
  }
  const std::string name = option->substr(0, option->find('='));
  std::vector<std::string> known;
  for (const CLI::Option* candidate : app.get_options()) {
    if (!candidate->get_positional()) {
      known.push_back(candidate->get_lnames().empty() ? "-" + candidate->get_snames().front()
                                                      : "--" + candidate->get_lnames().front());
    }
  }
  return fmt::format("unknown option {}{}", name, suggestion(name, known));
}

Exit refused(const CLI::App& root, const CLI::ParseError& error) {
  const CLI::App* app = &root;
  std::string program = root.get_name();
  while (app->remaining().empty() && !app->get_subcommands().empty()) {
    app = app->get_subcommands().front();  // the command, then its action
    program += " " + app->get_name();
  }
  const std::vector<std::string> rest = app->remaining();
  const bool lacks_action = app->get_require_subcommand_min() > 0 && app->get_subcommands().empty();
  if (lacks_action && (rest.empty() || !is_option(rest.front()))) {
    return usage_error(program, wrong_name(*app, "action", rest.empty() ? "" : rest.front()));
  }
  const bool is_left = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
                       std::any_of(rest.begin(), rest.end(), is_option);
  if (is_left) {
    return usage_error(program, unexpected_argument(*app));
  }
  const bool is_missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  const std::string missing = is_missing ? missing_argument(*app) : "";
  return usage_error(program, missing.empty() ? error.what() : missing + " is missing");
}

}  // namespace rondo
