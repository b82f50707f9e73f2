#include "data/text/byte_vocabulary.h"

#include <doctest/doctest.h>

#include "core/error.h"
#include "data/data_files.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("data/byte_vocabulary");

TEST_CASE("characters are numbered in byte order and come back") {
  const ByteVocabulary vocabulary("banana");
  CHECK(vocabulary.size() == 3);
  CHECK(vocabulary.characters() == "abn");
  CHECK(vocabulary.encode("nab") == std::vector<int64_t>{2, 0, 1});
  CHECK(vocabulary.decode({2, 0, 1}) == "nab");
  CHECK(vocabulary.decode({}).empty());
}

TEST_CASE("every byte may be a character") {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all.push_back(static_cast<char>(byte));
  }
  const ByteVocabulary vocabulary(all + "caf\xc3\xa9");
  CHECK(vocabulary.size() == 256);
  CHECK(vocabulary.decode(vocabulary.encode("caf\xc3\xa9")) == "caf\xc3\xa9");
}

TEST_CASE("what is not in the vocabulary is an error that says what and where") {
  const ByteVocabulary vocabulary("abc");
  const std::string message = message_of([&] { vocabulary.encode("abxa"); });
  CHECK(contains(message, "\"x\" at offset 2"));
  CHECK(contains(message, "0x78"));
  CHECK_THROWS_AS(vocabulary.decode({3}), DataError);
  CHECK_THROWS_AS(vocabulary.decode({-1}), DataError);
}

TEST_SUITE_END();
