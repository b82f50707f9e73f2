#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace rondo {

namespace {

/// What the value of an argument can be, by its name in the help.
struct Values {
  std::string words;  ///< literal ones, separated by blanks
  bool has_files = false;
  bool has_directories = false;
};

bool is_literal(std::string_view name) {
  return std::all_of(
      name.begin(), name.end(), [](unsigned char c) { return std::islower(c) || c == '-'; });
}

bool contains(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

Values values_of(const ArgumentHelp& argument) {
  Values values;
  std::string_view rest = argument.value;
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find('|'));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (is_literal(name)) {
      values.words += (values.words.empty() ? "" : " ") + std::string(name);
    } else if (contains(name, "DIR")) {
      values.has_directories = true;
    } else if (name == "PATH" || name == "SO" || contains(name, "FILE") ||
               (contains(name, ".") && !contains(name, "="))) {
      values.has_files = true;
    }
  }
  return values;
}

std::vector<std::string> names_of(const ArgumentHelp& argument) {
  std::vector<std::string> names;
  for (const std::string& name : {argument.short_name, argument.long_name}) {
    if (!name.empty()) {
      names.push_back(name);
    }
  }
  return names;
}

std::string joined(const std::vector<std::string>& words, const char* separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

std::vector<std::string> command_names(const CommandHelp& command) {
  std::vector<std::string> names;
  for (const CommandHelp& one : command.commands) {
    names.push_back(one.name);
  }
  return names;
}

/// The text with each of `characters` behind a backslash.
std::string escaped(const std::string& text, std::string_view characters) {
  std::string result;
  for (const char c : text) {
    if (characters.find(c) != std::string_view::npos) {
      result += '\\';
    }
    result += c;
  }
  return result;
}

/// In single quotes, for bash and zsh.
std::string quoted(const std::string& text) {
  std::string inside;
  for (const char c : text) {
    inside += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return "'" + inside + "'";
}

// ---- bash

/// What `compgen` is asked for values; "" when for nothing.
std::string bash_source(const Values& values) {
  std::string source;
  if (!values.words.empty()) {
    source += fmt::format(" -W '{}'", values.words);
  }
  if (values.has_files || values.has_directories) {
    source += values.has_files ? " -f" : " -d";
  }
  return source;
}

/// One branch of the script: what follows a command, or an action of a command.
std::string bash_branch(const std::string& pattern, const CommandHelp& command) {
  std::vector<std::string> options;
  std::string after_option;
  std::string positional;
  for (const ArgumentHelp& argument : command.arguments) {
    const std::string source = bash_source(values_of(argument));
    const std::vector<std::string> names = names_of(argument);
    options.insert(options.end(), names.begin(), names.end());
    if (argument.is_positional) {
      positional += positional.empty() ? source : "";
    } else if (!argument.value.empty()) {
      after_option += fmt::format("        {}) values=\"{} \" ;;\n", joined(names, "|"), source);
    }
  }
  std::string branch = fmt::format("    {})\n      options='{}'\n      values=\"{}\"\n",
                                   pattern,
                                   joined(options, " "),
                                   positional);
  if (!after_option.empty()) {
    branch += "      case $before in\n" + after_option + "      esac\n";
  }
  return branch + "      ;;\n";
}

std::string bash_words(const std::string& pattern, const CommandHelp& command) {
  std::vector<std::string> options;
  for (const ArgumentHelp& argument : command.arguments) {
    const std::vector<std::string> names = names_of(argument);
    options.insert(options.end(), names.begin(), names.end());
  }
  return fmt::format("    {})\n      options='{}'\n      values=\"-W '{}'\"\n      ;;\n",
                     pattern,
                     joined(options, " "),
                     joined(command_names(command), " "));
}

std::string bash_script(const CommandHelp& rondo) {
  std::string branches = bash_words("1:*", rondo);
  for (const CommandHelp& command : rondo.commands) {
    if (command.commands.empty()) {
      branches += bash_branch(fmt::format("*:\"{} \"*", command.name), command);
      continue;
    }
    branches += bash_words(fmt::format("2:\"{} \"*", command.name), command);
    for (const CommandHelp& action : command.commands) {
      branches += bash_branch(fmt::format("*:\"{} {}\"", command.name, action.name), action);
    }
  }
  return "# bash completion for rondo, written by `rondo completion bash`.\n"
         "_rondo() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
         "  local options='' values=''\n"
         "  case \"$COMP_CWORD:${COMP_WORDS[1]-} ${COMP_WORDS[2]-}\" in\n" +
         branches +
         "  esac\n"
         "  COMPREPLY=()\n"
         "  if [[ $word == -* ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
         "  elif [[ $values == *-* ]]; then\n"
         "    [[ $values == *' -f'* || $values == *' -d'* ]] && compopt -o filenames 2>/dev/null\n"
         "    mapfile -t COMPREPLY < <(eval \"compgen $values -- \\\"\\$word\\\"\")\n"
         "  fi\n"
         "}\n"
         "complete -F _rondo rondo\n";
}

// ---- zsh

std::string zsh_action(const ArgumentHelp& argument) {
  const Values values = values_of(argument);
  if (values.has_files) {
    return "_files";
  }
  if (values.has_directories) {
    return "_files -/";
  }
  return values.words.empty() ? " " : "(" + values.words + ")";
}

std::string zsh_argument(const ArgumentHelp& argument, size_t position) {
  const std::string value =
      argument.value.empty()
          ? ""
          : fmt::format(":{}:{}", escaped(argument.value, ":\\"), zsh_action(argument));
  if (argument.is_positional) {
    const std::string place = argument.is_repeated ? "*" : std::to_string(position);
    return quoted(place + value);
  }
  const std::vector<std::string> names = names_of(argument);
  const std::string doc = "[" + escaped(argument.doc, "[]:\\") + "]" + value;
  const std::string repeated = argument.is_repeated ? "*" : "";
  if (names.size() == 1) {
    return quoted(repeated + names.front() + doc);
  }
  return fmt::format("'({})'{{{}}}{}", joined(names, " "), joined(names, ","), quoted(doc));
}

std::string zsh_arguments(const CommandHelp& command, const std::string& indent) {
  std::string text = indent + "_arguments -s";
  size_t position = 0;
  for (const ArgumentHelp& argument : command.arguments) {
    position += argument.is_positional ? 1 : 0;
    text += " \\\n" + indent + "  " + zsh_argument(argument, position);
  }
  return text + "\n";
}

/// Completes the name of a command, and after it what belongs to that command.
std::string zsh_choice(const CommandHelp& command, const std::string& indent) {
  std::string names;
  std::string branches;
  for (const CommandHelp& one : command.commands) {
    names += indent + "    " + quoted(one.name + ":" + escaped(one.doc, ":\\")) + "\n";
    branches += fmt::format("{}  {})\n", indent, one.name);
    branches += one.commands.empty() ? zsh_arguments(one, indent + "    ")
                                     : zsh_choice(one, indent + "    ");
    branches += indent + "    ;;\n";
  }
  return fmt::format(
      "{0}if (( CURRENT == 2 )); then\n"
      "{0}  names=(\n{1}{0}  )\n"
      "{0}  _describe command names\n"
      "{2}"
      "{0}  return\n"
      "{0}fi\n"
      "{0}shift words\n"
      "{0}(( CURRENT-- ))\n"
      "{0}case $words[1] in\n{3}{0}esac\n",
      indent,
      names,
      zsh_arguments(command, indent + "  "),
      branches);
}

std::string zsh_script(const CommandHelp& rondo) {
  return "#compdef rondo\n"
         "# zsh completion for rondo, written by `rondo completion zsh`.\n"
         "_rondo() {\n"
         "  local -a names\n" +
         zsh_choice(rondo, "  ") +
         "}\n"
         "if [[ $funcstack[1] == _rondo ]]; then\n"
         "  _rondo \"$@\"\n"
         "else\n"
         "  compdef _rondo rondo\n"
         "fi\n";
}

// ---- fish

std::string fish_quoted(const std::string& text) {
  return "'" + escaped(text, "'\\") + "'";
}

std::string fish_values(const ArgumentHelp& argument) {
  const Values values = values_of(argument);
  std::string text;
  if (!values.words.empty()) {
    text += " -a " + fish_quoted(values.words);
  }
  if (values.has_files) {
    text += " -F";
  } else if (values.has_directories) {
    text += " -a '(__fish_complete_directories)'";
  }
  return text;
}

/// The lines for the arguments of a command; `condition`: when it was typed.
std::string fish_arguments(const std::string& condition, const CommandHelp& command) {
  std::string text;
  for (const ArgumentHelp& argument : command.arguments) {
    const std::string values = fish_values(argument);
    if (argument.is_positional && values.empty()) {
      continue;
    }
    text += fmt::format("complete -c rondo -n {}", fish_quoted(condition));
    if (!argument.is_positional) {
      text += argument.long_name.empty() ? "" : " -l " + argument.long_name.substr(2);
      text += argument.short_name.empty() ? "" : " -s " + argument.short_name.substr(1);
      text += argument.value.empty() ? "" : " -x";
    }
    text += fmt::format("{} -d {}\n", values, fish_quoted(argument.doc));
  }
  return text;
}

std::string fish_name(const std::string& condition, const CommandHelp& command) {
  return fmt::format("complete -c rondo -n {} -a {} -d {}\n",
                     fish_quoted(condition),
                     command.name,
                     fish_quoted(command.doc));
}

std::string fish_command(const CommandHelp& command) {
  const std::string seen = "__fish_seen_subcommand_from " + command.name;
  std::string text = fish_name("__fish_use_subcommand", command) + fish_arguments(seen, command);
  const std::string actions = joined(command_names(command), " ");
  for (const CommandHelp& action : command.commands) {
    text += fish_name(seen + "; and not __fish_seen_subcommand_from " + actions, action);
    text += fish_arguments(seen + "; and __fish_seen_subcommand_from " + action.name, action);
  }
  return text;
}

std::string fish_script(const CommandHelp& rondo) {
  std::string text =
      "# fish completion for rondo, written by `rondo completion fish`.\n"
      "complete -c rondo -f\n" +
      fish_arguments("__fish_use_subcommand", rondo);
  for (const CommandHelp& command : rondo.commands) {
    text += fish_command(command);
  }
  return text;
}

}  // namespace

std::string completion(const std::string& shell, const CommandHelp& rondo) {
  if (shell == "bash") {
    return bash_script(rondo);
  }
  return shell == "zsh" ? zsh_script(rondo) : fish_script(rondo);
}

}  // namespace rondo
