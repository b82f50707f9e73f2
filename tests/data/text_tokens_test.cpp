#include "data/text/text_tokens.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include "core/error.h"
#include "core/state_dict.h"
#include "data/data_files.h"
#include "data/data_loader.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

TextTokens::Options tokens_over(const TempDir& dir, const std::string& text) {
  write_file(dir / "input.txt", text);
  TextTokens::Options options;
  options.data_dir = dir.path();
  options.context = 4;
  return options;
}

std::string text_of(const TextTokens& data, const at::Tensor& tokens) {
  const auto* begin = tokens.data_ptr<int64_t>();
  return data.vocabulary().decode({begin, begin + tokens.numel()});
}

}  // namespace

TEST_SUITE_BEGIN("data/text_tokens");

TEST_CASE("windows of the text stand side by side, or as far apart as stride says") {
  const TempDir dir;
  auto options = tokens_over(dir, "the cat sat");
  options.val_fraction = 0.0;
  const TextTokens data(options);
  CHECK(data.size() == 2);
  CHECK(text_of(data, data.get(1)["tokens"]) == "cat ");
  CHECK(text_of(data, data.get(1)["targets"]) == "at s");
  CHECK((data.get(0)["tokens"].scalar_type() == at::kLong));
  options.stride = 1;
  const TextTokens dense(options);
  CHECK(dense.size() == 7);
  CHECK(text_of(dense, dense.get_batch({6})["targets"]) == " sat");
  CHECK(data.facts().vocabulary == 7);
}

TEST_CASE("the validation split is the end of the text and has the same vocabulary") {
  const TempDir dir;
  auto options = tokens_over(dir, std::string(90, 'a') + "bcdefghijk");
  const TextTokens train(options);
  options.split = "val";
  const TextTokens val(options);
  CHECK(train.vocabulary().characters() == val.vocabulary().characters());
  CHECK(text_of(val, val.get(0)["tokens"]) == "bcde");
  CHECK(text_of(train, train.get(train.size() - 1)["targets"]) == "aaaa");
}

TEST_CASE("characters have the numbers of training, and one that training lacks is named") {
  const TempDir dir;
  const TempDir other;
  auto options = tokens_over(dir, "the cat sat");
  options.val_fraction = 0.0;
  const TextTokens train(options);
  options = tokens_over(other, "cats at the");  // "." would be numbered before the letters
  options.val_fraction = 0.0;
  write_file(other / "input.txt", "cats at the.");
  TextTokens dot(options);
  CHECK_FALSE(equal_bytes(dot.get(0)["tokens"], train.get(1)["tokens"]));
  const std::string message = message_of([&] { dot.take_fitted(train.fitted()); });
  CHECK(contains(message, (other / "input.txt").string()));
  CHECK(contains(message, "\".\" at offset 11"));
  options.val_fraction = 0.1;  // the part for training ends before the dot
  TextTokens val(options);
  val.take_fitted(train.fitted());
  CHECK(text_of(val, val.get(0)["tokens"]) == "cats");
  CHECK(val.vocabulary().characters() == train.vocabulary().characters());
  CHECK(first_difference(val.fitted(), train.fitted()).empty());
  CHECK(equal_bytes(val.get(0)["tokens"].slice(0, 0, 3), train.get(1)["tokens"].slice(0, 0, 3)));
  CHECK_THROWS_AS(val.take_fitted({{"type", "CsvTable"}}), CheckpointError);
  CHECK_THROWS_AS(val.take_fitted({{"type", "TextTokens"}, {"characters", torch::zeros({3})}}),
                  CheckpointError);
}

TEST_CASE("a split too short for one window, and options out of range, are refused") {
  const TempDir dir;
  auto options = tokens_over(dir, "abcd");
  const std::string message = message_of([&] { TextTokens{options}; });
  CHECK(contains(message, (dir / "input.txt").string()));
  CHECK(contains(message, "need 5"));
  CHECK_THROWS_AS(TextTokens{tokens_over(dir, "")}, DataError);
  const auto refused = [&](auto change) {
    auto changed = tokens_over(dir, "abcdefghijklm");
    change(changed);
    CHECK_THROWS_AS(TextTokens{changed}, UsageError);
  };
  refused([](auto& o) { o.context = 0; });
  refused([](auto& o) { o.split = "test"; });
  refused([](auto& o) { o.val_fraction = 1.5; });
  refused([](auto& o) { o.stride = 0; });
}

TEST_CASE("a missing text says where it comes from") {
  const TempDir dir;
  TextTokens::Options options;
  options.data_dir = dir.path();
  CHECK(contains(message_of([&] { TextTokens{options}; }), "tinyshakespeare"));
}

TEST_CASE("the real Shakespeare is read, and its vocabulary reached through a loader") {
  const auto folder = public_data("shakespeare");
  if (!folder) {
    MESSAGE("skipped: no Shakespeare");
    return;
  }
  TextTokens::Options options;
  options.data_dir = folder->parent_path();
  const DataLoader loader(use<TextTokens>(options));
  const auto& data = dynamic_cast<const TextTokens&>(loader.source());
  CHECK(data.vocabulary().size() == 65);
  CHECK(data.size() > 15000);
  CHECK(contains(text_of(data, data.get(0)["tokens"]), "First Citizen:"));
}

TEST_SUITE_END();
