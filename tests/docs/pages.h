#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rondo::test {

/// The root of the source tree.
const std::filesystem::path kSource = RONDO_SOURCE_DIR;

/// A fenced block of code of a page.
struct Block {
  std::string page;
  int line = 0;  ///< of the fence
  std::string language;
  std::string text;
};

std::vector<std::string> lines_of(const std::string& text);

/// The files of the tree relative to its root, without what was built in it.
std::vector<std::filesystem::path> files_of_tree();

/// The text of a page, which is relative to the root.
std::string read_page(const std::filesystem::path& page);

/// The pages with code that a reader copies: those of the root, of docs/ and of the examples.
std::vector<std::filesystem::path> pages_with_code();

/// The pages that are held to the rules of prose: those of the root, and of docs/ without the
/// folders below it.
std::vector<std::filesystem::path> pages_of_prose();

std::vector<Block> blocks_of(const std::filesystem::path& page);

/// The words of a command as a shell makes them, without its comment. Pages quote nothing.
std::vector<std::string> words_of_command(const std::string& command);

/// What the command line says against a command; "" when it understands it.
std::string refusal(const std::vector<std::string>& words);

/// Whether an error says that this build lacks an optional library.
bool says_library_is_missing(const std::string& error);

}  // namespace rondo::test
