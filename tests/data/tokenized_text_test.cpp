#include "data/text/tokenized_text.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/state_dict.h"
#include "data/data_files.h"
#include "data/text_files.h"
#include "support/contains.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// Two files and a vocabulary.
struct Corpus {
  TempDir dir;

  Corpus() {
    std::filesystem::create_directories(dir / "texts");
    std::filesystem::create_directories(dir / "words");
    write_file(dir / "texts/1.txt", "abab\n\nba");
    write_file(dir / "texts/2.txt", "b");
    write_byte_pairs(dir / "words", {"a b", "ab ab"});
  }

  TokenizedText::Options options() const {
    TokenizedText::Options made;
    made.file = "texts/*.txt";
    made.vocabulary = "words";
    made.context = 2;
    made.val_fraction = 0.0;
    made.data_dir = dir.path();
    return made;
  }
};

std::vector<int64_t> all_of(const TokenizedText& data) {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < data.size(); ++i) {
    const at::Tensor window = data.get(i)["tokens"];
    tokens.insert(tokens.end(), window.data_ptr<int64_t>(), window.data_ptr<int64_t>() + 2);
  }
  return tokens;
}

}  // namespace

TEST_SUITE_BEGIN("data/tokenized_text");

TEST_CASE("documents are packed into full windows, with a token after each") {
  const Corpus corpus;
  auto options = corpus.options();
  const TokenizedText whole(options);
  CHECK(whole.vocabulary().decode(all_of(whole)) == "abab\n\nba<|endoftext|>");
  CHECK(all_of(whole)[0] == 257);
  CHECK(whole.get(2)["targets"][1].item<int64_t>() == whole.vocabulary().find("b"));

  options.separator = "\n\n";
  const TokenizedText cut(options);
  CHECK(cut.vocabulary().decode(all_of(cut)) == "abab<|endoftext|>ba<|endoftext|>b");
  options.end_of_text = "b";
  CHECK(TokenizedText(options).vocabulary().decode(all_of(TokenizedText(options))) == "ababbbabb");
  options.end_of_text = "</s>";
  CHECK(contains(message_of([&] { TokenizedText{options}; }), "has no token \"</s>\""));
}

TEST_CASE("the validation split is the end of the tokens") {
  const Corpus corpus;
  auto options = corpus.options();
  options.val_fraction = 0.5;
  const TokenizedText train(options);
  options.split = "val";
  const TokenizedText val(options);
  CHECK(train.vocabulary().decode(all_of(train)) == "abab\n");
  CHECK(val.vocabulary().decode(all_of(val)) == "a<|endoftext|>");
  CHECK(train.facts().vocabulary == 259);
}

TEST_CASE("a vocabulary other than that of training is an error") {
  const Corpus corpus;
  TokenizedText data(corpus.options());
  const StateDict fitted = data.fitted();
  data.take_fitted(fitted);
  write_byte_pairs(corpus.dir / "words", {"a b", "o x"});
  TokenizedText other(corpus.options());
  CHECK(contains(message_of([&] { other.take_fitted(fitted); }), "another vocabulary"));
  write_byte_pairs(corpus.dir / "words", {"a b", "ab a"});  // it differs in its last merge alone
  TokenizedText last(corpus.options());
  CHECK(contains(message_of([&] { last.take_fitted(fitted); }), "another vocabulary"));
}

TEST_CASE("what is missing or damaged is an error that names it") {
  const Corpus corpus;
  auto options = corpus.options();
  const auto error = [&] { return message_of([&] { TokenizedText{options}; }); };
  options.vocabulary = "nowhere";
  CHECK(contains(error(), "nowhere/vocab.json"));
  options = corpus.options();
  options.file = "texts/3*.txt";
  CHECK(contains(error(), "3*.txt"));
  options.file = "texts/2.txt";
  CHECK(contains(error(), "2 tokens; one window and its target need 3"));
  options = corpus.options();
  options.separator = "\r\n";
  CHECK(contains(error(), "the separator stands in none of the files"));
  write_file(corpus.dir / "texts/1.txt", "abc\n\nab\xFF");
  options = corpus.options();
  options.separator = "\n\n";
  CHECK(contains(error(), "1.txt: the document at offset 5"));
  CHECK(contains(error(), "offset 2: this is no UTF-8"));
}

TEST_SUITE_END();
