#include "docs/pages.h"

#include <algorithm>
#include <sstream>
#include <variant>

#include "cli/command_line.h"
#include "core/file_system.h"

namespace rondo::test {

namespace fs = std::filesystem;

namespace {

/// The pages at the root, but the changelog, which reports what was.
const std::vector<fs::path> kRootPages = {"README.md", "CONTRIBUTING.md", "SECURITY.md"};

template <class Iterator>
void add_pages(const char* folder, std::vector<fs::path>& found) {
  for (const auto& entry : Iterator(kSource / folder)) {
    if (entry.path().extension() == ".md") {
      found.push_back(entry.path().lexically_relative(kSource));
    }
  }
}

}  // namespace

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

std::vector<fs::path> files_of_tree() {
  std::vector<fs::path> found;
  for (auto entry = fs::recursive_directory_iterator(kSource); entry != end(entry); ++entry) {
    const std::string name = entry->path().filename();
    const auto is_built = [&] { return fs::exists(entry->path() / "CMakeCache.txt"); };
    if (entry->is_directory() && (name.rfind("build", 0) == 0 || name == ".git" || is_built())) {
      entry.disable_recursion_pending();
    } else if (!entry->is_directory()) {
      found.push_back(entry->path().lexically_relative(kSource));
    }
  }
  return found;
}

std::string read_page(const fs::path& page) {
  return real_file_system()->read(kSource / page);
}

std::vector<fs::path> pages_with_code() {
  std::vector<fs::path> found = kRootPages;
  add_pages<fs::recursive_directory_iterator>("docs", found);
  add_pages<fs::recursive_directory_iterator>("examples", found);
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<fs::path> pages_of_prose() {
  std::vector<fs::path> found = kRootPages;
  add_pages<fs::directory_iterator>("docs", found);
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<Block> blocks_of(const fs::path& page) {
  const std::string fence = "```";
  std::vector<Block> found;
  bool is_inside = false;
  int number = 0;
  for (const std::string& line : lines_of(read_page(page))) {
    ++number;
    if (line.rfind(fence, 0) == 0) {
      is_inside = !is_inside;
      if (is_inside) {
        found.push_back({page.string(), number, line.substr(fence.size()), ""});
      }
    } else if (is_inside) {
      found.back().text += line + "\n";
    }
  }
  return found;
}

std::vector<std::string> words_of_command(const std::string& command) {
  std::istringstream stream(command.substr(0, command.find(" #")));
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(word);
  }
  return words;
}

std::string refusal(const std::vector<std::string>& words) {
  std::vector<const char*> arguments;
  for (const std::string& word : words) {
    arguments.push_back(word.c_str());
  }
  const auto parsed = parse_command_line(static_cast<int>(arguments.size()), arguments.data());
  const Exit* const exit = std::get_if<Exit>(&parsed);
  return exit != nullptr && exit->code != 0 ? exit->text : "";
}

bool says_library_is_missing(const std::string& error) {
  return error.find("this rondo was built without") != std::string::npos;
}

}  // namespace rondo::test
