#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/argument_errors.h"
#include "cli/arguments/families.h"
#include "cli/command_help.h"
#include "cli/completion.h"
#include "cli/man_page.h"
#include "core/glob.h"
#include "core/version.h"

namespace rondo {

namespace {

struct CommandName {
  const char* name;
  Command command;
};

constexpr CommandName kCommands[] = {{"fit", Command::Fit},
                                     {"validate", Command::Validate},
                                     {"validate_all", Command::ValidateAll},
                                     {"predict", Command::Predict},
                                     {"plan", Command::Plan},
                                     {"plot-schedule", Command::PlotSchedule},
                                     {"verify-resume", Command::VerifyResume},
                                     {"checkpoint", Command::Checkpoint},
                                     {"debug", Command::Debug},
                                     {"describe", Command::Describe},
                                     {"export", Command::Export},
                                     {"export-step", Command::ExportStep},
                                     {"inspect", Command::Inspect},
                                     {"completion", Command::Completion},
                                     {"man", Command::Man},
                                     {"runs", Command::Runs},
                                     {"plot", Command::Plot},
                                     {"diff", Command::Diff},
                                     {"launch", Command::Launch},
                                     {"query", Command::Query},
                                     {"alerts", Command::Alerts},
                                     {"watch", Command::Watch},
                                     {"board", Command::Board},
                                     {"data", Command::Data},
                                     {"version", Command::Version}};

const CommandName* find_command(std::string_view name) {
  const auto* found = std::find_if(std::begin(kCommands),
                                   std::end(kCommands),
                                   [&](const CommandName& c) { return c.name == name; });
  return found == std::end(kCommands) ? nullptr : found;
}

/// What `rondo man` prints.
Exit manual_page(const CommandHelp& rondo, const std::string& page) {
  if (page.empty()) {
    return {0, man_page(rondo), false};
  }
  std::vector<std::string> names;
  for (const CommandHelp& command : rondo.commands) {
    if (command.name == page) {
      return {0, man_page(rondo, command), false};
    }
    names.push_back(command.name);
  }
  return usage_error("rondo man",
                     fmt::format("unknown command \"{}\"{}", page, suggestion(page, names)));
}

void add_commands(CLI::App& root, CommandLine& line) {
  add_run_commands(root, line);
  add_result_commands(root, line);
  add_record_commands(root, line);
  add_program_commands(root, line);
}

void describe_program(CLI::App& root) {
  root.set_version_flag("--version", fmt::format("rondo {}", kVersion), "Print the version");
  root.set_help_flag("-h,--help", "Print this help");
  root.require_subcommand(0, 1);
  root.footer("`rondo COMMAND --help` explains a command.");
}

/// What follows the options of `launch` is checked before any rank starts.
std::variant<CommandLine, Exit> launch_line(const CLI::App& root, CommandLine line) {
  const CLI::App& launch = *root.get_subcommand("launch");
  line.files = launch.remaining();
  if (!line.files.empty() && is_option(line.files.front())) {
    return usage_error("rondo launch", unexpected_argument(launch));
  }
  if (!line.files.empty() && is_command(line.files.front())) {
    std::vector<const char*> arguments = {"rondo"};
    for (const std::string& word : line.files) {
      arguments.push_back(word.c_str());
    }
    const auto parsed = parse_command_line(static_cast<int>(arguments.size()), arguments.data());
    if (const Exit* const exit = std::get_if<Exit>(&parsed)) {
      return *exit;
    }
    if (std::get<CommandLine>(parsed).command == Command::Launch) {
      return usage_error("rondo launch", "the command starts processes itself: give -n or --jobs");
    }
  }
  return line;
}

/// `predict --jobs=4 run.toml` as `launch -n 4 predict run.toml`: ranks share a prediction.
CommandLine launch_of_jobs(const CommandLine& line, int argc, const char* const* argv) {
  CommandLine launch;
  launch.command = Command::Launch;
  launch.ranks = line.jobs;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--jobs") {
      ++i;
    } else if (word.rfind("--jobs=", 0) != 0) {
      launch.files.push_back(word);
    }
  }
  return launch;
}

}  // namespace

bool is_command(std::string_view name) {
  return find_command(name) != nullptr;
}

std::variant<CommandLine, Exit> parse_command_line(int argc, const char* const* argv) {
  CommandLine line;
  CLI::App root("Trains models: runs described in TOML, each step recorded once and replayed.",
                "rondo");
  root.formatter(help_format());  // its commands copy it
  describe_program(root);
  add_commands(root, line);

  if (argc < 2) {
    return Exit{kUsageError, root.help(), true};
  }
  const std::string_view first = argv[1];
  const CommandName* named = find_command(first);
  if (named == nullptr && first.substr(0, 1) != "-") {
    return usage_error("rondo", wrong_name(root, "command", first));
  }
  try {
    // Before the command stands one option of rondo's own, or a mistake to tell.
    root.parse(named != nullptr ? argc : 2, argv);
  } catch (const CLI::CallForHelp&) {
    return Exit{0, root.help(), false};
  } catch (const CLI::CallForVersion& version) {
    return Exit{0, fmt::format("{}\n", version.what()), false};
  } catch (const CLI::ParseError& error) {
    return refused(root, error);
  }
  if (named == nullptr) {
    return usage_error("rondo", "the command must come first");
  }
  line.command = named->command;
  if (line.command == Command::Launch) {
    return launch_line(root, std::move(line));
  }
  if (line.command == Command::Predict && line.jobs > 1 && !line.dry_run) {
    return launch_of_jobs(line, argc, argv);
  }
  switch (line.command) {
    case Command::Completion:
      return Exit{0, completion(line.shell, help_of(root)), false};
    case Command::Man:
      return manual_page(help_of(root), line.page);
    default:
      return line;
  }
}

}  // namespace rondo
