#include "docs/prose.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <regex>
#include <sstream>

namespace rondo::test {

namespace {

const std::string kCode = "`…`";

/// Calls `visit(number, line)` for every line outside of fenced code.
void for_each_line(const std::string& markdown,
                   const std::function<void(int, const std::string&)>& visit) {
  std::istringstream stream(markdown);
  bool is_code = false;
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (line.rfind("```", 0) == 0) {
      is_code = !is_code;
      visit(number, "");
    } else if (!is_code) {
      visit(number, line);
    }
  }
}

bool is_table(const std::string& line) {
  return line.rfind('|', 0) == 0;
}

bool is_heading(const std::string& line) {
  return line.rfind('#', 0) == 0;
}

/// Code becomes one word, a link its text, and emphasis goes.
std::string read_aloud(const std::string& line) {
  static const std::regex code("`[^`]*`");
  static const std::regex link(R"(\[([^\]]*)\]\([^)]*\))");
  static const std::regex marks(R"(\*\*|~~)");
  return std::regex_replace(
      std::regex_replace(std::regex_replace(line, code, kCode), link, "$1"), marks, "");
}

int words_in(const std::string& text) {
  std::istringstream stream(text);
  int count = 0;
  for (std::string word; stream >> word;) {
    const bool has_letter =
        std::any_of(word.begin(), word.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
    count += has_letter || word.find(kCode) != std::string::npos ? 1 : 0;
  }
  return count;
}

/// Cuts a paragraph behind full stops, question and exclamation marks that a new sentence follows.
void add_sentences(int line, const std::string& paragraph, std::vector<Sentence>& found) {
  static const std::regex end(R"([.!?]["')]*\s+(?=[A-Z0-9`"'(\[]|rondo\b))");
  const auto add = [&](const std::string& text) {
    if (words_in(text) > 0) {
      found.push_back({line, text, words_in(text)});
    }
  };
  size_t begin = 0;
  for (std::sregex_iterator at(paragraph.begin(), paragraph.end(), end), none; at != none; ++at) {
    const size_t next = static_cast<size_t>(at->position() + at->length());
    add(paragraph.substr(begin, next - begin));
    begin = next;
  }
  add(paragraph.substr(begin));
}

}  // namespace

std::vector<Sentence> sentences_of(const std::string& markdown) {
  static const std::regex item(R"(^\s*([-*]|[0-9]+\.)\s+)");
  std::vector<Sentence> found;
  std::string paragraph;
  int first = 0;
  const auto finish = [&] {
    add_sentences(first, read_aloud(paragraph), found);
    paragraph.clear();
  };
  for_each_line(markdown, [&](int number, const std::string& line) {
    const bool is_prose = !line.empty() && !is_table(line) && !is_heading(line);
    std::smatch mark;
    const bool is_item = is_prose && std::regex_search(line, mark, item);
    if (!is_prose || is_item) {
      finish();
    }
    if (is_prose) {
      first = paragraph.empty() ? number : first;
      paragraph += (paragraph.empty() ? "" : " ") + (is_item ? mark.suffix().str() : line);
    }
  });
  finish();
  return found;
}

std::vector<Span> text_without_code(const std::string& markdown) {
  std::vector<Span> found;
  for (const Sentence& sentence : sentences_of(markdown)) {
    found.push_back({sentence.line, sentence.text});
  }
  for_each_line(markdown, [&](int number, const std::string& line) {
    if (is_table(line) || is_heading(line)) {
      found.push_back({number, read_aloud(line)});
    }
  });
  return found;
}

std::vector<Span> code_spans_of(const std::string& markdown) {
  static const std::regex code("`([^`]+)`");
  std::vector<Span> found;
  for_each_line(markdown, [&](int number, const std::string& line) {
    for (std::sregex_iterator at(line.begin(), line.end(), code), none; at != none; ++at) {
      found.push_back({number, (*at)[1].str()});
    }
  });
  return found;
}

std::vector<Span> links_of(const std::string& markdown) {
  static const std::regex link(R"(\]\(([^)]+)\))");
  std::vector<Span> found;
  for_each_line(markdown, [&](int number, const std::string& line) {
    for (std::sregex_iterator at(line.begin(), line.end(), link), none; at != none; ++at) {
      found.push_back({number, (*at)[1].str()});
    }
  });
  return found;
}

std::vector<std::string> anchors_of(const std::string& markdown) {
  std::vector<std::string> found;
  for_each_line(markdown, [&](int, const std::string& line) {
    if (!is_heading(line)) {
      return;
    }
    std::string anchor;
    for (const unsigned char c : line.substr(line.find_first_not_of("# "))) {
      if (std::isalnum(c) != 0 || c == '-' || c == '_' || c >= 0x80) {
        anchor += static_cast<char>(std::tolower(c));
      } else if (c == ' ') {
        anchor += '-';
      }
    }
    found.push_back(anchor);
  });
  return found;
}

int count_of(const std::string& words, const std::string& text) {
  const std::regex whole("\\b" + words + "\\b", std::regex::icase);
  return static_cast<int>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), whole), std::sregex_iterator()));
}

}  // namespace rondo::test
