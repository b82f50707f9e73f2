#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>

#include "cli/arguments/families.h"
#include "cli/arguments/shared.h"

namespace rondo {

namespace {

void add_describe(CLI::App& root, CommandLine& line) {
  CLI::App& app =
      *root.add_subcommand("describe", "List all components, or the keys of one of them");
  CLI::Option* const name =
      app.add_option("name", line.name, "Show this component only; \"trainer\": what all runs have")
          ->type_name("NAME");
  CLI::Option* const json = app.add_flag("--json", line.json, "Print JSON");
  app.add_option(
         "--write", line.output, "Write the reference of all components as Markdown instead")
      ->type_name("DIR")
      ->excludes(name)
      ->excludes(json);
  add_plugins(app, line);
}

void add_completion(CLI::App& root, CommandLine& line) {
  CLI::App& app = *root.add_subcommand(
      "completion", "Print the script with which a shell completes commands and options");
  app.add_option("shell", line.shell, "The shell")
      ->required()
      ->type_name("bash|zsh|fish")
      ->check([](const std::string& shell) {
        return shell == "bash" || shell == "zsh" || shell == "fish"
                   ? ""
                   : fmt::format("expected bash, zsh or fish, got \"{}\"", shell);
      });
}

void add_man(CLI::App& root, CommandLine& line) {
  CLI::App& app = *root.add_subcommand("man", "Print a manual page, as `man -l -` reads it");
  app.add_option("page", line.page, "The page of this command (default: of rondo)")
      ->type_name("COMMAND");
}

}  // namespace

void add_program_commands(CLI::App& root, CommandLine& line) {
  add_describe(root, line);
  add_completion(root, line);
  add_man(root, line);
  root.add_subcommand("version", "Print the versions of rondo and of what it runs on");
}

}  // namespace rondo
