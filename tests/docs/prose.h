#pragma once

#include <string>
#include <vector>

namespace rondo::test {

/// A sentence of a page, or an item of a list without a full stop.
struct Sentence {
  int line = 0;      ///< where its paragraph begins
  std::string text;  ///< each piece of code in it is "`…`", which counts as one word
  int words = 0;
};

/// A piece of a line, such as the target of a link or the inside of backticks.
struct Span {
  int line = 0;
  std::string text;
};

/// What Markdown says in sentences: everything but code, tables and headings.
std::vector<Sentence> sentences_of(const std::string& markdown);

/// Everything that is read aloud, one item a line: sentences, tables and headings without code.
std::vector<Span> text_without_code(const std::string& markdown);

/// What stands between backticks, in one line.
std::vector<Span> code_spans_of(const std::string& markdown);

/// The targets of links.
std::vector<Span> links_of(const std::string& markdown);

/// The anchors of the headings, as GitHub makes them.
std::vector<std::string> anchors_of(const std::string& markdown);

/// How often the words stand in the text, whatever their case, as whole words.
int count_of(const std::string& words, const std::string& text);

}  // namespace rondo::test
