#include "callbacks/builtin/sample_text.h"

#include <fmt/format.h>

#include <exception>

#include "core/error.h"
#include "core/random.h"
#include "core/registry.h"
#include "core/report_file.h"
#include "core/require.h"
#include "core/standard_error.h"
#include "data/text/vocabulary.h"
#include "models/builtin/gpt.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

const TextSource& text_of(const DataLoader& train) {
  return dynamic_cast<const TextSource&>(train.source());
}

std::vector<int64_t> encoded(const std::optional<std::string>& prompt, const TextSource& text) {
  const Vocabulary& vocabulary = text.vocabulary();
  if (!prompt) {
    const std::optional<int64_t> end = text.end_of_text();
    return {end ? *end : vocabulary.find("\n").value_or(0)};
  }
  try {
    return vocabulary.encode(*prompt);
  } catch (const DataError&) {
    std::throw_with_nested(UsageError(
        "SampleText: prompt has a character that the training text lacks; give it another one"));
  }
}

}  // namespace

void SampleText::check(const Options& options) {
  detail::require(!options.prompt || !options.prompt->empty(),
                  "SampleText.prompt",
                  "at least one character",
                  "none");
}

SampleText::SampleText(const Options& options) : options_(options) {
  detail::require(options.length >= 1, "SampleText.length", ">= 1", options.length);
  detail::require(options.temperature > 0.0, "SampleText.temperature", "> 0", options.temperature);
  detail::require(options.top_k >= 0, "SampleText.top_k", ">= 0", options.top_k);
  detail::require(!options.every || options.every->value() > 0.0,
                  "SampleText.every",
                  "> 0",
                  options.every ? options.every->to_string() : "");
  check(options);
}

void SampleText::on_fit_start(Trainer& trainer, const DataLoader& train, const Loaders&, Loop&) {
  const auto* model = dynamic_cast<const Gpt*>(trainer.state().model.get());
  if (model == nullptr || dynamic_cast<const TextSource*>(&train.source()) == nullptr) {
    throw UsageError("SampleText needs a Gpt that is trained on TextTokens or TokenizedText");
  }
  const Vocabulary& vocabulary = text_of(train).vocabulary();
  if (vocabulary.size() > model->vocabulary()) {
    throw UsageError(
        fmt::format("the training text has {0} different tokens, and the Gpt a vocabulary of "
                    "{1}: set the model's vocabulary to {0} or more",
                    vocabulary.size(),
                    model->vocabulary()));
  }
  prompt_ = encoded(options_.prompt, text_of(train));
  train_ = train;
  written_ = -1;
}

void SampleText::on_train_batch_end(
    Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) {
  const State& state = trainer.state();
  if (options_.every && state.position.is_last &&
      state.falls_due(*options_.every, state.previous, state.timestamp)) {
    trainer.defer({}, [this, &trainer](const std::vector<at::Tensor>&) { write(trainer); });
  }
}

void SampleText::on_fit_end(Trainer& trainer, Loop&) {
  if (written_ != trainer.state().global_step()) {
    write(trainer);
  }
}

void SampleText::write(Trainer& trainer) {
  written_ = trainer.state().global_step();
  const Vocabulary& vocabulary = text_of(*train_).vocabulary();
  KeyedRandom random(trainer.state().seed, static_cast<uint64_t>(trainer.state().global_step()));
  auto& model = dynamic_cast<Gpt&>(*trainer.state().model);
  const std::string text = vocabulary.decode(model.generate(
      prompt_, {options_.length, options_.temperature, vocabulary.size(), options_.top_k}, random));
  write_to_stderr(text + "\n");
  trainer.log_media({"sample", text});
  write_report(trainer.log(), trainer.state().artifact_dir / "sample.txt", text + "\n");
}

void register_sample_text(Registry<Callback>& registry) {
  registry.add<SampleText>("SampleText", "Prints text that a Gpt writes when a fit ends.")
      .key("length", &SampleText::Options::length, at_least(1), "tokens")
      .key("temperature",
           &SampleText::Options::temperature,
           greater_than(0),
           "lower is more cautious")
      .key("top_k",
           &SampleText::Options::top_k,
           at_least(0),
           "how many of the likeliest tokens one is chosen of; 0: all")
      .key("prompt",
           &SampleText::Options::prompt,
           "what the text begins with; when absent the token between texts, or a newline, or the "
           "first token there is")
      .key("every",
           &SampleText::Options::every,
           greater_than(0),
           "time between two texts while it trains; absent: one at the end");
}

}  // namespace rondo
