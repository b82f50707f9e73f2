#include "data/text/byte_pairs.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "data/data_files.h"
#include "data/text_files.h"
#include "support/contains.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

/// What pairs of bytes become, in the order of their making. "\u0120" is a blank there.
const std::vector<std::string> kMerges{"h e", "l l", "he ll", "hell o", "\u0120 w", "\u0120w o"};

std::vector<std::string> texts_of(const BytePairs& pairs, std::string_view text) {
  std::vector<std::string> texts;
  for (const int64_t token : pairs.encode(text)) {
    texts.push_back(pairs.decode({token}));
  }
  return texts;
}

}  // namespace

TEST_SUITE_BEGIN("data/byte_pairs");

TEST_CASE("pairs merge in the order of their making, and never across words") {
  const TempDir dir;
  write_byte_pairs(dir.path(), kMerges);
  const BytePairs pairs(dir.path());
  CHECK(pairs.size() == 256 + 6 + 1);
  CHECK(texts_of(pairs, "hello world") == std::vector<std::string>{"hello", " wo", "r", "l", "d"});
  CHECK(texts_of(pairs, "hehell") == std::vector<std::string>{"he", "hell"});
  CHECK(texts_of(pairs, "hel lo") == std::vector<std::string>{"he", "l", " ", "l", "o"});
  CHECK(texts_of(pairs, "lll") == std::vector<std::string>{"ll", "l"});
  CHECK(pairs.encode("").empty());
}

TEST_CASE("any text of UTF-8 comes back from its tokens") {
  const TempDir dir;
  write_byte_pairs(dir.path(), kMerges);
  const BytePairs pairs(dir.path());
  std::string all;
  for (int letter = 1; letter < 128; ++letter) {
    all += static_cast<char>(letter);
  }
  for (const std::string& text : {std::string("hello\n\n  world's 42nd \t"),
                                  std::string("naïve €7 日本語 🙂"),
                                  all,
                                  std::string(5000, 'l'),
                                  std::string("<|endoftext|>")}) {
    CHECK(pairs.decode(pairs.encode(text)) == text);
  }
  CHECK(pairs.end_of_text() == 262);
  CHECK(pairs.decode({262}) == "<|endoftext|>");
  CHECK(pairs.find("hello") == pairs.encode("hello")[0]);
  CHECK_FALSE(pairs.find("hallo"));
}

TEST_CASE("damaged files and text that is no UTF-8 are errors that name the place") {
  const TempDir dir;
  const auto error = [&](const std::string& file, const std::string& content) {
    write_byte_pairs(dir.path(), kMerges);
    write_file(dir.path() / file, content);
    return message_of([&] { BytePairs{dir.path()}; });
  };
  CHECK(contains(error("vocab.json", "{\"a\": 0, \"b\""), "vocab.json: damaged"));
  CHECK(contains(error("vocab.json", "{\"a\": 0, \"b\": 2}"), "are not 0 to 1"));
  CHECK(contains(error("vocab.json", "{\"a\": 0, \"b\": 99999999999}"), "damaged"));
  CHECK(contains(error("vocab.json", "{\"a\": 0}"), "no token for byte 0x00 alone"));
  CHECK(contains(error("merges.txt", "#version: 0.2\nh e\nq x\n"), "line 3: \"q x\" is no pair"));
  CHECK(contains(error("merges.txt", "he\n"), "line 1"));
  CHECK(error("merges.txt", "").empty());
  const BytePairs pairs(dir.path());
  CHECK(contains(message_of([&] { pairs.encode("ab\xFF"); }), "offset 2: this is no UTF-8"));
  CHECK(contains(message_of([&] { pairs.decode({-1}); }), "token -1 is not in the vocabulary"));
  CHECK(contains(message_of([&] { pairs.decode({263}); }), "of 263"));
}

TEST_SUITE_END();
