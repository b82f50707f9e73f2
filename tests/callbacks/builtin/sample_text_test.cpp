#include "callbacks/builtin/sample_text.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/error.h"
#include "core/file_system.h"
#include "data/text/text_tokens.h"
#include "models/builtin/gpt.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr int64_t kLength = 50;

/// A fit of two updates on a text, and the sample at its end.
struct Sampled {
  TempDir dir;
  int64_t vocabulary = 4;
  std::optional<std::string> prompt = {};
  int64_t updates = 0;  ///< that the last run made

  std::string of(const std::string& text) {
    std::ofstream(dir / "text.txt") << text;
    TextTokens::Options data;
    data.file = (dir / "text.txt").string();
    data.context = 4;
    data.val_fraction = 0.0;
    TrainerOptions options = tiny_options(dir / "run");
    options.model = use<Gpt>({1, 1, 4, 4, vocabulary});
    options.loop.max_steps = 2;
    options.callbacks = {use<SampleText>({kLength, 100.0, prompt})};  // hot: every token comes up
    Trainer trainer(options, quiet_log());
    const auto count = [&] { updates = trainer.state().global_step(); };
    try {
      trainer.fit(DataLoader("train", use<TextTokens>(data)));
    } catch (...) {
      count();
      throw;
    }
    count();
    return real_file_system()->read(trainer.state().artifact_dir / "sample.txt");
  }
};

/// What a run is refused with before its first update.
std::string refusal(Sampled&& run, const std::string& text) {
  try {
    run.of(text);
  } catch (const HookError& error) {
    CHECK(run.updates == 0);
    const auto* nesting = dynamic_cast<const std::nested_exception*>(&error);
    REQUIRE(nesting != nullptr);
    CHECK_THROWS_AS(nesting->rethrow_nested(), UsageError);
    return describe(std::current_exception());
  }
  return "nothing was thrown";
}

}  // namespace

TEST_SUITE_BEGIN("callbacks/builtin/sample_text");

TEST_CASE("a sample is of the text's characters, and begins with the prompt or with a newline") {
  const std::string sample = Sampled{{}, 4, {}, 0}.of("ab\nabab\nab");
  CHECK(sample.size() == 1 + kLength + 1);  // prompt, sample, end of the line
  CHECK(sample.front() == '\n');
  CHECK(Sampled{{}, 4, "ba", 0}.of("ab\nabab\nab").substr(0, 2) == "ba");
}

TEST_CASE("without a newline in the text a sample begins with its first character") {
  CHECK(Sampled{{}, 4, {}, 0}.of("cabcabcab").front() == 'a');
}

TEST_CASE("tokens of the model that the text has not are never chosen") {
  const std::string sample = Sampled{{}, 100, {}, 0}.of("abababababab");
  CHECK(std::all_of(sample.begin(), sample.end() - 1, [](char c) { return c == 'a' || c == 'b'; }));
}

TEST_CASE("a text with more characters than the model is refused before the first update") {
  const std::string message = refusal({{}, 3, {}, 0}, "abcdeabcdeabcde");
  CHECK(message.find(" 5 ") != std::string::npos);
  CHECK(message.find(" 3") != std::string::npos);
}

TEST_CASE("a prompt that the text cannot make is refused before the first update") {
  CHECK(refusal({{}, 4, "z", 0}, "ab\nabab\nab").find("prompt") != std::string::npos);
  CHECK_THROWS_AS(SampleText({1, 1.0, ""}), UsageError);
}

TEST_CASE("with an interval texts come while it trains, and loggers get each") {
  struct TextLogger final : Logger {
    struct Options {
      std::vector<std::pair<int64_t, std::string>>* texts = nullptr;
    };

    explicit TextLogger(const Options& o) : options(o) {}

    void log(const Metrics&, int64_t) override {}

    void log_media(const Media& media, int64_t update) override {
      CHECK(media.name == "sample");
      options.texts->emplace_back(update, std::get<std::string>(media.value));
    }

    Options options;
  };

  std::vector<std::vector<std::pair<int64_t, std::string>>> both;
  for (const char* mode : {"eager", "traced"}) {
    const TempDir dir;
    std::ofstream(dir / "text.txt") << "ab\nabab\nab";
    TextTokens::Options data;
    data.file = (dir / "text.txt").string();
    data.context = 4;
    data.val_fraction = 0.0;
    std::vector<std::pair<int64_t, std::string>> texts;
    TrainerOptions options = tiny_options(dir / "run");
    options.backend.mode = mode;
    options.model = use<Gpt>({1, 1, 4, 4, 4});
    options.loop.max_steps = 5;
    options.loggers = {use<TextLogger>({&texts})};
    SampleText::Options sample;
    sample.length = 10;
    sample.every = 2;
    options.callbacks = {use<SampleText>(sample)};
    Trainer(options, quiet_log()).fit(DataLoader("train", use<TextTokens>(data)));
    REQUIRE(texts.size() == 3);
    CHECK(texts[0].first == 2);
    CHECK(texts[1].first == 4);
    CHECK(texts[2].first == 5);
    CHECK(texts[2].second.size() == 11);
    both.push_back(texts);
  }
  CHECK(both[0] == both[1]);
  SampleText::Options never;
  never.every = 0;
  CHECK_THROWS_AS(SampleText{never}, UsageError);
}

TEST_SUITE_END();
