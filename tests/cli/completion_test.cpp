// Shell completion and manual pages: both are made of the tables that `--help` shows.

#include "cli/completion.h"

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "cli/command_line.h"
#include "support/contains.h"
#include "support/temp_dir.h"

using rondo::test::contains;
using rondo::test::TempDir;

namespace {

using Words = std::vector<std::string>;

std::string answered_text(const Words& arguments) {
  std::vector<const char*> pointers{"rondo"};
  for (const std::string& argument : arguments) {
    pointers.push_back(argument.c_str());
  }
  const auto parsed = rondo::parse_command_line(static_cast<int>(pointers.size()), pointers.data());
  REQUIRE(std::holds_alternative<rondo::Exit>(parsed));
  CHECK(std::get<rondo::Exit>(parsed).code == 0);
  return std::get<rondo::Exit>(parsed).text;
}

/// The words at the beginning of the lines below a heading of a help: "-h,--help" is two.
Words listed(const std::string& help, const std::string& heading) {
  Words words;
  std::istringstream lines(help);
  bool is_below = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("  ", 0) != 0) {
      is_below = line == heading;
    } else if (is_below && line[2] != ' ') {
      std::istringstream names(line.substr(2, line.find(' ', 2) - 2));
      for (std::string name; std::getline(names, name, ',');) {
        words.push_back(name);
      }
    }
  }
  return words;
}

/// A command, or an action of one, with its options.
struct Listed {
  Words path;
  Words options;
};

/// All that help lists.
std::vector<Listed> everything() {
  std::vector<Listed> found;
  for (const std::string& command : listed(answered_text({"--help"}), "Subcommands:")) {
    const std::string help = answered_text({command, "--help"});
    found.push_back({{command}, listed(help, "Options:")});
    for (const std::string& action : listed(help, "Subcommands:")) {
      found.push_back(
          {{command, action}, listed(answered_text({command, action, "--help"}), "Options:")});
    }
  }
  return found;
}

std::string joined_by_spaces(const Words& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

/// The lines that a shell command prints; fails where the command does.
Words run(const std::string& command, const TempDir& dir) {
  const std::string out = (dir / "out").string();
  REQUIRE(std::system((command + " >'" + out + "'").c_str()) == 0);
  std::ifstream stream(out);
  Words lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

bool has_program(const std::string& name) {
  return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

/// What bash offers after these words, of which the last is being typed.
Words bash_offers(const Words& words) {
  const TempDir dir;
  std::ofstream(dir / "script") << answered_text({"completion", "bash"});
  std::string typed = "rondo";
  for (const std::string& word : words) {
    typed += " '" + word + "'";
  }
  std::ofstream(dir / "ask") << "cd '" << dir.path().string() << "'\nmkdir runs\ntouch a.toml\n"
                             << "source ./script\nCOMP_WORDS=(" << typed
                             << ")\nCOMP_CWORD=" << words.size()
                             << "\n_rondo\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
  return run("bash '" + (dir / "ask").string() + "'", dir);
}

bool offers(const Words& words, const std::string& wanted) {
  for (const std::string& word : bash_offers(words)) {
    if (word == wanted) {
      return true;
    }
  }
  return false;
}

}  // namespace

TEST_SUITE_BEGIN("cli/completion");

TEST_CASE("help lists commands, actions and options, which the tests below look for") {
  bool has_average = false;
  bool has_watch = false;
  for (const Listed& one : everything()) {
    has_average = has_average || joined_by_spaces(one.path) == "checkpoint average";
    for (const std::string& option : one.options) {
      has_watch = has_watch || option == "--watch";
    }
  }
  CHECK(has_average);
  CHECK(has_watch);
}

TEST_CASE("bash offers every command, every action, and every option of each") {
  for (const Listed& one : everything()) {
    CAPTURE(joined_by_spaces(one.path));
    Words begun = one.path;
    begun.back() = begun.back().substr(0, 1);
    CHECK(offers(begun, one.path.back()));
    Words options = one.path;
    options.push_back("-");
    const Words offered = bash_offers(options);
    CHECK(joined_by_spaces(offered) == joined_by_spaces(one.options));
  }
}

TEST_CASE("bash offers what a value can be: files, directories, and words such as none") {
  CHECK(offers({"fit", ""}, "a.toml"));
  CHECK(offers({"fit", "a.toml", "--model-dir", ""}, "runs"));
  CHECK_FALSE(offers({"fit", "a.toml", "--model-dir", ""}, "a.toml"));
  CHECK(offers({"fit", "a.toml", "--checkpoint", "n"}, "none"));
  CHECK_FALSE(offers({"fit", "a.toml", "--max-restarts", ""}, "a.toml"));
  CHECK(offers({"completion", ""}, "zsh"));
}

TEST_CASE("the scripts of zsh and fish name every command, action and option") {
  for (const char* shell : {"zsh", "fish"}) {
    CAPTURE(shell);
    const std::string script = answered_text({"completion", shell});
    const std::string dashes = shell == std::string("zsh") ? "--" : "-l ";
    for (const Listed& one : everything()) {
      CAPTURE(joined_by_spaces(one.path));
      const std::string& name = one.path.back();
      CHECK(contains(script, shell == std::string("zsh") ? "'" + name + ":" : "-a " + name + " "));
      for (const std::string& option : one.options) {
        CHECK_MESSAGE((option.size() == 2 || contains(script, dashes + option.substr(2))), option);
      }
    }
  }
}

TEST_CASE("each shell that is installed can read its script") {
  for (const char* name : {"bash", "zsh", "fish"}) {
    const std::string shell = name;
    if (!has_program(shell)) {
      MESSAGE("not installed: " << shell);
      continue;
    }
    CAPTURE(shell);
    const TempDir dir;
    std::ofstream(dir / "script") << answered_text({"completion", shell});
    CHECK(run(shell + " -n '" + (dir / "script").string() + "'", dir).empty());
  }
}

TEST_CASE("rondo(1) refers to the page of every command; pages name every action and option") {
  const auto in_troff = [](const std::string& text) {
    std::string escaped;
    for (const char c : text) {
      escaped += c == '-' ? "\\-" : std::string(1, c);
    }
    return escaped;
  };
  const std::string rondo = answered_text({"man"});
  for (const Listed& one : everything()) {
    CAPTURE(joined_by_spaces(one.path));
    const std::string page = answered_text({"man", one.path.front()});
    CHECK(contains(rondo, ".BR rondo\\-" + in_troff(one.path.front()) + " (1)\n"));
    CHECK(contains(page, "\\fBrondo " + in_troff(joined_by_spaces(one.path))));
    for (const std::string& option : one.options) {
      CHECK_MESSAGE(contains(page, "\\fB" + in_troff(option) + "\\fR"), option);
    }
  }
}

TEST_CASE("man renders a page without a warning") {
  const TempDir dir;
  const Words version = has_program("man") ? run("LC_ALL=C man --version 2>&1", dir) : Words();
  if (!has_program("col") || version.empty() || version.front().rfind("man 2", 0) != 0) {
    MESSAGE("skipped: no man of man-db, or no col");
    return;
  }
  std::ofstream(dir / "page.1") << answered_text({"man", "checkpoint"});
  const Words lines = run(
      "LC_ALL=C MANWIDTH=80 man --warnings=w -l '" + (dir / "page.1").string() + "' 2>&1 | col -b",
      dir);
  REQUIRE_FALSE(lines.empty());
  CHECK(contains(lines.front(), "rondo-checkpoint(1)"));
  for (const std::string& line : lines) {
    CHECK_FALSE_MESSAGE(contains(line, "warning"), line);
  }
}

TEST_CASE("a shell and a page that rondo does not know are named") {
  const char* const shell[] = {"rondo", "completion", "tcsh"};
  const auto refused = std::get<rondo::Exit>(rondo::parse_command_line(3, shell));
  CHECK(refused.code == 2);
  CHECK(contains(refused.text, "tcsh"));
  const char* const page[] = {"rondo", "man", "fti"};
  const auto unknown = std::get<rondo::Exit>(rondo::parse_command_line(3, page));
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.text, "\"fti\""));
  CHECK(contains(unknown.text, "did you mean \"fit\""));
}

TEST_SUITE_END();
