#include "data/text/text_tokens.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string_view>

#include "core/error.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/data_dir.h"
#include "data/internal/learnt.h"
#include "data/internal/read_file.h"
#include "data/internal/rows.h"
#include "data/register.h"

namespace rondo {

namespace {

void check(const TextTokens::Options& options) {
  check_windows("TextTokens", options.context, options.stride);
  detail::require(options.split == "train" || options.split == "val",
                  "TextTokens: split",
                  "\"train\" or \"val\"",
                  options.split);
  detail::require(options.val_fraction >= 0 && options.val_fraction <= 1,
                  "TextTokens: val_fraction",
                  "in [0, 1]",
                  options.val_fraction);
}

std::vector<uint8_t> split_tokens(const TextTokens::Options& options,
                                  const ByteVocabulary& vocabulary,
                                  std::string_view text) {
  const auto border =
      static_cast<size_t>(static_cast<double>(text.size()) * (1.0 - options.val_fraction));
  const std::string_view part =
      options.split == "train" ? text.substr(0, border) : text.substr(border);
  const std::vector<int64_t> tokens = vocabulary.encode(part);
  return {tokens.begin(), tokens.end()};
}

/// As bytes: a checkpoint's texts are UTF-8, of which a character can be a part.
at::Tensor character_bytes(const std::string& characters) {
  at::Tensor bytes = at::empty({static_cast<int64_t>(characters.size())}, at::kByte);
  std::copy(characters.begin(), characters.end(), bytes.data_ptr<uint8_t>());
  return bytes;
}

ByteVocabulary vocabulary_of(const StateDict& fitted) {
  detail::require_learnt_by("TextTokens", fitted);
  const at::Tensor bytes = fitted.at("characters").as_tensor().contiguous();
  if (bytes.scalar_type() != at::kByte || bytes.dim() != 1) {
    throw CheckpointError("what was learnt of the characters is damaged");
  }
  return ByteVocabulary({static_cast<const char*>(bytes.data_ptr()), bytes.nbytes()});
}

}  // namespace

TextTokens::Text TextTokens::read(const Options& options) {
  check(options);
  const bool is_shakespeare = options.file == "input.txt" && options.folder == "shakespeare";
  const DataFile file{
      "TextTokens",
      {options.file},
      options.folder,
      is_shakespeare ? "github.com/karpathy/char-rnn, data/tinyshakespeare/input.txt" : ""};
  const std::filesystem::path path = find_data_file(options.data_dir, file);
  return {path, detail::read_data_file(path)};
}

TextTokens::TextTokens(const Options& options) : TextTokens(options, read(options)) {}

TextTokens::TextTokens(const Options& options, const Text& text)
    : path_(text.path),
      vocabulary_(text.content),
      tokens_(split_tokens(options, vocabulary_, text.content)),
      windows_(static_cast<int64_t>(tokens_.size()), options.context, options.stride) {
  if (windows_.size() == 0) {
    throw DataError(
        fmt::format("{}: the split \"{}\" has {} characters; one window and its target need {}",
                    text.path.string(),
                    options.split,
                    tokens_.size(),
                    options.context + 1));
  }
}

StateDict TextTokens::fitted() const {
  return {{"type", "TextTokens"}, {"characters", character_bytes(vocabulary_.characters())}};
}

void TextTokens::take_fitted(const StateDict& fitted) {
  const ByteVocabulary learnt = vocabulary_of(fitted);
  if (learnt.characters() == vocabulary_.characters()) {
    return;
  }
  const std::string text = vocabulary_.decode({tokens_.begin(), tokens_.end()});
  try {
    const std::vector<int64_t> tokens = learnt.encode(text);
    tokens_.assign(tokens.begin(), tokens.end());
  } catch (const DataError&) {
    std::throw_with_nested(DataError(fmt::format(
        "{}: its split has a character that training did not have; remove it from the text",
        path_.string())));
  }
  vocabulary_ = learnt;
}

Sample TextTokens::get(int64_t index) const {
  return detail::only_sample(get_batch({index}));
}

Batch TextTokens::get_batch(const std::vector<int64_t>& indices) const {
  return windows_.gather(tokens_.data(), indices);
}

DatasetFacts TextTokens::facts() const {
  DatasetFacts facts;
  facts.vocabulary = vocabulary_.size();
  return facts;
}

void register_text_tokens(Registry<DataSource>& registry) {
  using Options = TextTokens::Options;
  registry.add<TextTokens>("TextTokens", "A text file as windows of characters.")
      .key("context", &Options::context, at_least(1), "characters of a window")
      .key("split",
           &Options::split,
           one_of({"train", "val"}),
           "the beginning of the text, or its end")
      .key("val_fraction",
           &Options::val_fraction,
           between(0, 1),
           "share of the text that is split \"val\", at its end")
      .key("stride",
           &Options::stride,
           at_least(1),
           "characters from one window to the next; context when absent")
      .key("file", &Options::file, "name or path of the text")
      .key("data_dir", &Options::data_dir, "directory of the file; else RONDO_DATA")
      .key("folder", &Options::folder, "folder of data_dir that is searched too");
}

}  // namespace rondo
