#pragma once

#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace rondo {

/// An option or a positional argument, as the help of its command shows it.
struct ArgumentHelp {
  std::string long_name;   ///< such as "--model-dir"; empty when it has none
  std::string short_name;  ///< such as "-o"; empty when it has none
  /// Such as "DIR"; empty: a flag. Alternatives stand between bars: words in lower case are meant
  /// literally, so "PATH|none" is a path or the word none.
  std::string value;
  std::string doc;
  std::string default_value;
  bool is_positional = false;
  bool is_required = false;
  bool is_repeated = false;  ///< one value or more
};

/// A command as its help shows it. Shell completion and manual pages are made of this.
struct CommandHelp {
  std::string name;
  std::string doc;
  std::string footer;
  std::vector<ArgumentHelp> arguments;
  std::vector<CommandHelp> commands;  ///< of rondo: its commands; of a command: its actions
};

/// That of a command as it is parsed.
CommandHelp help_of(const CLI::App& app);

/// How `--help` shows a command and its arguments.
std::shared_ptr<CLI::FormatterBase> help_format();

/// The first argument that must be given and was not, by the name that help shows; "" when none is
/// missing.
std::string missing_argument(const CLI::App& app);

}  // namespace rondo
