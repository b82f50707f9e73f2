#include "cli/man_page.h"

#include <fmt/format.h>

#include "core/version.h"

namespace rondo {

namespace {

/// Text for troff: hyphens as they are typed, and no line that begins like a request.
std::string plain(const std::string& text) {
  std::string escaped;
  bool is_line_start = true;
  for (const char c : text) {
    if (is_line_start && (c == '.' || c == '\'')) {
      escaped += "\\&";
    }
    is_line_start = c == '\n';
    if (c == '-') {
      escaped += "\\-";
    } else if (c == '\\') {
      escaped += "\\e";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string bold(const std::string& text) {
  return "\\fB" + plain(text) + "\\fR";
}

std::string italic(const std::string& text) {
  return "\\fI" + plain(text) + "\\fR";
}

std::string header(const std::string& name, const std::string& doc) {
  return fmt::format(".TH \"{0}\" 1 \"\" \"rondo {1}\" \"rondo\"\n.SH NAME\n{0} \\- {2}\n",
                     plain(name),
                     kVersion,
                     plain(doc));
}

/// An argument as a line of a synopsis shows it: [\fIKEY.PATH=VALUE\fR ...]
std::string in_synopsis(const ArgumentHelp& argument) {
  const std::string value = italic(argument.value) + (argument.is_repeated ? " ..." : "");
  return argument.is_required ? value : "[" + value + "]";
}

std::string synopsis(const std::string& words, const CommandHelp& command) {
  std::string text = ".PP\n" + bold(words);
  for (const ArgumentHelp& argument : command.arguments) {
    if (argument.is_positional) {
      text += " " + in_synopsis(argument);
    }
  }
  return text + " [" + italic("OPTIONS") + "]\n";
}

/// The term of an argument in its list: \fB-o\fR, \fB--model-dir\fR \fIDIR\fR
std::string term(const ArgumentHelp& argument) {
  std::string text;
  for (const std::string& name : {argument.short_name, argument.long_name}) {
    if (!name.empty()) {
      text += (text.empty() ? "" : ", ") + bold(name);
    }
  }
  if (!argument.value.empty()) {
    text += (text.empty() ? "" : " ") + italic(argument.value);
  }
  return text;
}

/// Positional arguments, then options.
std::string arguments(const CommandHelp& command) {
  std::string text;
  for (const bool is_positional : {true, false}) {
    for (const ArgumentHelp& argument : command.arguments) {
      if (argument.is_positional == is_positional) {
        const std::string& usual = argument.default_value;
        text += fmt::format(".TP\n{}\n{}{}\n",
                            term(argument),
                            plain(argument.doc),
                            usual.empty() ? "" : fmt::format(" (default: {})", plain(usual)));
      }
    }
  }
  return text;
}

std::string footer(const std::string& text) {
  return text.empty() ? "" : ".SH NOTES\n" + plain(text) + "\n";
}

}  // namespace

std::string man_page(const CommandHelp& rondo) {
  std::string page = header(rondo.name, rondo.doc) + ".SH SYNOPSIS\n" + bold(rondo.name) + " " +
                     italic("COMMAND") + " [" + italic("ARGUMENTS") + "]\n.SH COMMANDS\n";
  for (const CommandHelp& command : rondo.commands) {
    page += fmt::format(
        ".TP\n.BR {} (1)\n{}\n", plain(rondo.name + "-" + command.name), plain(command.doc));
  }
  return page + ".SH OPTIONS\n" + arguments(rondo) + footer(rondo.footer);
}

std::string man_page(const CommandHelp& rondo, const CommandHelp& command) {
  const std::string words = rondo.name + " " + command.name;
  std::string page = header(rondo.name + "-" + command.name, command.doc) + ".SH SYNOPSIS\n";
  if (command.commands.empty()) {
    page += synopsis(words, command);
  }
  for (const CommandHelp& action : command.commands) {
    page += synopsis(words + " " + action.name, action);
  }
  page += ".SH OPTIONS\n" + arguments(command);
  if (!command.commands.empty()) {
    page += ".SH ACTIONS\n";
  }
  for (const CommandHelp& action : command.commands) {
    page += fmt::format(".SS {}\n{}\n{}", plain(action.name), plain(action.doc), arguments(action));
  }
  return page + footer(command.footer) + ".SH SEE ALSO\n.BR " + plain(rondo.name) + " (1)\n";
}

}  // namespace rondo
