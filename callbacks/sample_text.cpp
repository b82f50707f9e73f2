#include "callbacks/sample_text.h"

#include <cstdio>

#include "core/error.h"
#include "core/file_system.h"
#include "core/random.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/text_tokens.h"
#include "models/gpt.h"
#include "trainer/trainer.h"

namespace rondo {

SampleText::SampleText(const Options& options) : options_(options) {
  detail::require(options.length >= 1, "SampleText.length", ">= 1", options.length);
  detail::require(options.temperature > 0.0, "SampleText.temperature", "> 0", options.temperature);
}

void SampleText::on_fit_start(Trainer& trainer, const DataLoader& train, const Loaders&, Loop&) {
  if (dynamic_cast<const Gpt*>(trainer.state().model.get()) == nullptr ||
      dynamic_cast<const TextTokens*>(&train.source()) == nullptr) {
    throw UsageError("SampleText needs a Gpt that is trained on TextTokens");
  }
  train_ = train;
}

void SampleText::on_fit_end(Trainer& trainer, Loop&) {
  const ByteVocabulary& vocabulary = dynamic_cast<const TextTokens&>(train_->source()).vocabulary();
  KeyedRandom random(trainer.state().seed, static_cast<uint64_t>(trainer.state().global_step()));
  auto& model = dynamic_cast<Gpt&>(*trainer.state().model);
  const std::string text = vocabulary.decode(model.generate(
      vocabulary.encode(options_.prompt), {options_.length, options_.temperature}, random));
  std::fprintf(stderr, "%s\n", text.c_str());
  write_atomically(*real_file_system(), trainer.state().artifact_dir / "sample.txt", text + "\n");
}

void register_sample_text(Registry<Callback>& registry) {
  registry.add<SampleText>("SampleText", "Prints text that a Gpt writes when a fit ends.")
      .key("length", &SampleText::Options::length, at_least(1), "characters")
      .key("temperature",
           &SampleText::Options::temperature,
           greater_than(0),
           "lower is more cautious")
      .key("prompt", &SampleText::Options::prompt, "what the text begins with");
}

}  // namespace rondo
