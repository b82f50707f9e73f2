// The rules of prose, for the pages, the help of the commands and the descriptions of components.

#include "docs/prose.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "cli/command_line.h"
#include "docs/pages.h"
#include "trainer/run_config.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

namespace {

constexpr int kMostWords = 45;        ///< of a sentence
constexpr double kMostOnMean = 20.0;  ///< words of a page's sentences

/// Never written.
const std::vector<std::string> kForbidden = {
    "anew", "foretold", "whoever", "whichever", "thereof", "in place of"};

/// Better left out. Their count in all texts may fall, and then this number with it.
const std::vector<std::string> kAvoided = {"of its own",
                                           "beside",
                                           "behind",
                                           "lies in",
                                           "goes on",
                                           "by itself",
                                           "tells",
                                           "is told",
                                           "of the kind"};
constexpr int kMostAvoided = 0;

/// A text and where it is from.
struct Text {
  std::string source;
  std::string text;
};

std::string place(const fs::path& page, int line) {
  return page.string() + ":" + std::to_string(line);
}

std::vector<Text> texts_of_pages() {
  std::vector<Text> found;
  for (const fs::path& page : pages_of_prose()) {
    for (const Span& span : text_without_code(read_page(page))) {
      found.push_back({place(page, span.line), span.text});
    }
  }
  return found;
}

std::string help_of(std::vector<const char*> command) {
  command.push_back("--help");
  const auto parsed = parse_command_line(static_cast<int>(command.size()), command.data());
  return std::get<Exit>(parsed).text;
}

/// The names that a help lists under "Subcommands:".
std::vector<std::string> commands_in(const std::string& help) {
  static const std::regex name(R"(^  ([a-z][a-z_-]*)\b)");
  std::vector<std::string> found;
  bool is_inside = false;
  for (const std::string& line : lines_of(help)) {
    is_inside = is_inside || line.rfind("Subcommands:", 0) == 0;
    std::smatch match;
    if (is_inside && std::regex_search(line, match, name)) {
      found.push_back(match[1].str());
    }
  }
  return found;
}

/// The help of every command and of every action of a command.
std::vector<Text> helps() {
  const std::string root = help_of({"rondo"});
  std::vector<Text> found = {{"rondo --help", root}};
  for (const std::string& command : commands_in(root)) {
    const std::string help = help_of({"rondo", command.c_str()});
    found.push_back({"rondo " + command + " --help", help});
    for (const std::string& action : commands_in(help)) {
      found.push_back({"rondo " + command + " " + action + " --help",
                       help_of({"rondo", command.c_str(), action.c_str()})});
    }
  }
  return found;
}

void add_keys(const std::string& owner,
              const std::vector<OptionKey>& keys,
              std::vector<Text>& found) {
  for (const OptionKey& key : keys) {
    found.push_back({owner + "." + key.name, key.doc});
    add_keys(owner + "." + key.name, key.nested, found);
  }
}

template <class Base>
void add_components(const Registry<Base>& registry, std::vector<Text>& found) {
  for (const auto& entry : registry.entries()) {
    found.push_back({"describe " + entry.name, entry.doc});
    add_keys(entry.name, entry.keys->keys(), found);
  }
}

/// What `rondo describe` says of every component and key.
std::vector<Text> descriptions() {
  Registries registries;
  register_builtins(registries);
  std::vector<Text> found;
  add_components(registries.models, found);
  add_components(registries.losses, found);
  add_components(registries.datasets, found);
  add_components(registries.optimizers, found);
  add_components(registries.steps, found);
  add_components(registries.schedulers, found);
  add_components(registries.algorithms, found);
  add_components(registries.callbacks, found);
  add_components(registries.sparsity_algorithms, found);
  add_components(registries.metrics, found);
  add_components(registries.loggers, found);
  add_keys("trainer", trainer_keys(registries).keys(), found);
  add_keys("dataloader", loader_keys().keys(), found);
  return found;
}

std::vector<Text> all_texts() {
  std::vector<Text> all = texts_of_pages();
  for (const std::vector<Text>& more : {helps(), descriptions()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// True for a file or folder below one of the tree's folders: "optim/schedules/". Metrics and
/// suites, such as "data/damaged", have neither a suffix nor a slash at the end.
bool is_below_folder_of_tree(const std::string& code) {
  static const std::regex path(R"(([a-z_]+)/([A-Za-z0-9_./-]*(/|\.[a-z0-9]+))?)");
  static const std::set<std::string> folders = [] {
    std::set<std::string> found;
    for (const fs::path& file : files_of_tree()) {
      found.insert(file.begin()->string());
    }
    return found;
  }();
  std::smatch match;
  return std::regex_match(code, match, path) && folders.count(match[1].str()) > 0;
}

/// True for what pages write between backticks when they name a file or folder of the tree.
bool names_a_file(const std::string& code) {
  static const std::regex source(R"([A-Za-z0-9_./-]+\.(cpp|h|md|cmake|sh))");
  return std::regex_match(code, source) || is_below_folder_of_tree(code);
}

/// True when the path, which may leave out the first folders, is a file or a folder with files.
bool is_in_tree(const std::string& path, const std::vector<fs::path>& files) {
  const std::string inner = "/" + path;
  return std::any_of(files.begin(), files.end(), [&](const fs::path& file) {
    const std::string whole = "/" + file.string();
    return ends_with(whole, inner) || (path.back() == '/' && whole.rfind(inner, 0) == 0);
  });
}

std::string without_prefix(const std::string& text, const std::string& prefix) {
  return text.rfind(prefix, 0) == 0 ? text.substr(prefix.size()) : text;
}

}  // namespace

TEST_SUITE_BEGIN("docs/prose");

TEST_CASE("a page is cut into sentences, without code, tables and headings") {
  const std::string page =
      "# A page. Not prose.\n\nOne `x. Y` two. Three\nfour, LibTorch 1.13 too. rondo x.\n- five\n- "
      "six: "
      "[seven](a.md)\n\n| a | b |\n\n```sh\nrondo. Fit\n```\n1. **eight**\n";
  const std::vector<Sentence> sentences = sentences_of(page);
  REQUIRE(sentences.size() == 6);
  CHECK(sentences[0].text == "One `…` two. ");
  CHECK(sentences[0].words == 3);
  CHECK(sentences[0].line == 3);
  CHECK(sentences[1].words == 5);
  CHECK(sentences[2].text == "rondo x.");
  CHECK(sentences[3].text == "five");
  CHECK(sentences[4].text == "six: seven");
  CHECK(sentences[5].text == "eight");
  CHECK(anchors_of(page) == std::vector<std::string>{"a-page-not-prose"});
  CHECK(links_of(page).size() == 1);
  CHECK(count_of("two", "Two, between two and twofold") == 2);
}

TEST_CASE("no sentence of a page has more than 45 words") {
  for (const fs::path& page : pages_of_prose()) {
    for (const Sentence& sentence : sentences_of(read_page(page))) {
      INFO(place(page, sentence.line) << ": " << sentence.text);
      CHECK(sentence.words <= kMostWords);
    }
  }
}

TEST_CASE("the sentences of a page have 20 words or fewer on average") {
  for (const fs::path& page : pages_of_prose()) {
    const std::vector<Sentence> sentences = sentences_of(read_page(page));
    double words = 0;
    for (const Sentence& sentence : sentences) {
      words += sentence.words;
    }
    INFO(page.string());
    CHECK(words <= kMostOnMean * static_cast<double>(sentences.size()));
  }
}

TEST_CASE("no description of a component or key, and no line of a help, has more than 45 words") {
  std::vector<Text> texts = descriptions();
  CHECK(texts.size() > 100);
  for (const Text& help : helps()) {
    for (const std::string& line : lines_of(help.text)) {
      texts.push_back({help.source, line});
    }
  }
  for (const Text& text : texts) {
    for (const Sentence& sentence : sentences_of(text.text)) {
      INFO(text.source << ": " << sentence.text);
      CHECK(sentence.words <= kMostWords);
    }
  }
}

TEST_CASE("pages, helps and descriptions have no words that need a second reading") {
  CHECK(helps().size() > 12);
  for (const Text& text : all_texts()) {
    for (const std::string& word : kForbidden) {
      INFO(text.source << ": " << word << ": " << text.text);
      CHECK(count_of(word, text.text) == 0);
    }
  }
}

TEST_CASE("words that are better left out become no more") {
  int count = 0;
  for (const Text& text : all_texts()) {
    for (const std::string& word : kAvoided) {
      const int here = count_of(word, text.text);
      count += here;
      if (here > 0) {
        MESSAGE(text.source << ": " << word);
      }
    }
  }
  MESSAGE("words that are better left out: " << count);
  CHECK(count <= kMostAvoided);
}

TEST_CASE("links lead to a file and a heading that exist") {
  for (const fs::path& page : pages_with_code()) {
    for (const Span& link : links_of(read_page(page))) {
      if (link.text.rfind("http", 0) == 0) {
        continue;
      }
      INFO(place(page, link.line) << ": " << link.text);
      const size_t hash = link.text.find('#');
      const fs::path file = link.text.substr(0, hash);
      const fs::path target = file.empty() ? page : page.parent_path() / file;
      REQUIRE(fs::exists(kSource / target));
      if (hash != std::string::npos) {
        const std::vector<std::string> anchors = anchors_of(read_page(target));
        CHECK(std::count(anchors.begin(), anchors.end(), link.text.substr(hash + 1)) > 0);
      }
    }
  }
}

TEST_CASE("files that a page names exist") {
  const std::vector<fs::path> files = files_of_tree();
  size_t count = 0;
  for (const fs::path& page : pages_of_prose()) {
    for (const Span& code : code_spans_of(read_page(page))) {
      if (!names_a_file(code.text)) {
        continue;
      }
      const std::string name = without_prefix(without_prefix(code.text, "rondo/"), "./");
      INFO(place(page, code.line) << ": " << code.text);
      CHECK(is_in_tree(name, files));
      ++count;
    }
  }
  CHECK(count > 100);
}

TEST_CASE("commands in a sentence are understood") {
  for (const fs::path& page : pages_of_prose()) {
    for (const Span& code : code_spans_of(read_page(page))) {
      const std::vector<std::string> words = words_of_command(code.text);
      if (words.size() < 2 || (words[0] != "rondo" && words[0] != "./run.sh") ||
          words[1] == "test") {
        continue;
      }
      INFO(place(page, code.line) << ": " << code.text);
      const std::string answer = refusal(words);
      // A sentence may leave out arguments and values: `rondo fit`, `--max-restarts`.
      CHECK((answer.empty() || answer.find(" is missing") != std::string::npos ||
             answer.find("required") != std::string::npos));
    }
  }
}

TEST_SUITE_END();
