#include "data/text/tokenized_text.h"

#include <fmt/format.h>

#include <cstddef>
#include <exception>
#include <string_view>

#include "core/error.h"
#include "core/registry.h"
#include "core/require.h"
#include "core/utf8.h"
#include "data/data_dir.h"
#include "data/internal/learnt.h"
#include "data/internal/read_file.h"
#include "data/internal/rows.h"
#include "data/optional_reader.h"
#include "data/register.h"

namespace rondo {

namespace {

void check(const TokenizedText::Options& options) {
  require_reader("PCRE2", "TokenizedText");
  detail::require(!options.file.empty(), "TokenizedText: file", "given", "\"\"");
  detail::require(!options.vocabulary.empty(), "TokenizedText: vocabulary", "given", "\"\"");
  check_windows("TokenizedText", options.context, options.stride);
  detail::require(options.split == "train" || options.split == "val",
                  "TokenizedText: split",
                  "\"train\" or \"val\"",
                  options.split);
  detail::require(options.val_fraction >= 0 && options.val_fraction <= 1,
                  "TokenizedText: val_fraction",
                  "in [0, 1]",
                  options.val_fraction);
}

std::filesystem::path folder_of_vocabulary(const TokenizedText::Options& options) {
  check(options);
  const std::filesystem::path tokens = std::filesystem::path(options.vocabulary) / "vocab.json";
  return find_data_file(options.data_dir,
                        {"the vocabulary of TokenizedText", {tokens.string()}, options.folder, ""})
      .parent_path();
}

/// The documents of a file, without what stands between them. Empty ones are left out.
std::vector<std::string_view> documents_of(std::string_view text, const std::string& separator) {
  std::vector<std::string_view> documents;
  while (!text.empty()) {
    const size_t end = separator.empty() ? std::string_view::npos : text.find(separator);
    if (const std::string_view document = text.substr(0, end); !document.empty()) {
      documents.push_back(document);
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + separator.size());
  }
  return documents;
}

std::optional<int64_t> end_token(const TokenizedText::Options& options,
                                 const Vocabulary& vocabulary) {
  if (!options.end_of_text) {
    return vocabulary.end_of_text();
  }
  const std::optional<int64_t> found = vocabulary.find(*options.end_of_text);
  if (!found) {
    throw DataError(fmt::format("TokenizedText: the vocabulary {} has no token \"{}\"",
                                options.vocabulary,
                                *options.end_of_text));
  }
  return found;
}

std::vector<uint32_t> all_tokens(const TokenizedText::Options& options,
                                 const Vocabulary& vocabulary) {
  const std::optional<int64_t> end = end_token(options, vocabulary);
  std::vector<uint32_t> tokens;
  bool has_separator = false;  // an empty one stands everywhere
  for (const std::filesystem::path& path :
       find_data_files(options.data_dir, {"TokenizedText", {options.file}, options.folder, ""})) {
    const std::string content = detail::read_data_file(path);
    const std::string_view text = without_byte_order_mark(content);
    has_separator = has_separator || text.find(options.separator) != std::string_view::npos;
    for (const std::string_view document : documents_of(text, options.separator)) {
      try {
        for (const int64_t token : vocabulary.encode(document)) {
          tokens.push_back(static_cast<uint32_t>(token));
        }
      } catch (const DataError&) {
        std::throw_with_nested(DataError(fmt::format(
            "{}: the document at offset {}", path.string(), document.data() - content.data())));
      }
      if (end) {
        tokens.push_back(static_cast<uint32_t>(*end));
      }
    }
  }
  if (!has_separator) {
    throw DataError(fmt::format(
        "TokenizedText: the separator stands in none of the files {}; its line ends may be others",
        options.file));
  }
  return tokens;
}

std::vector<uint32_t> split_tokens(const TokenizedText::Options& options,
                                   const Vocabulary& vocabulary) {
  const std::vector<uint32_t> tokens = all_tokens(options, vocabulary);
  const auto border =
      tokens.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(tokens.size()) *
                                                   (1.0 - options.val_fraction));
  return options.split == "train" ? std::vector<uint32_t>(tokens.begin(), border)
                                  : std::vector<uint32_t>(border, tokens.end());
}

}  // namespace

TokenizedText::TokenizedText(const Options& options)
    : options_(options),
      vocabulary_(folder_of_vocabulary(options)),
      tokens_(split_tokens(options, vocabulary_)),
      windows_(static_cast<int64_t>(tokens_.size()), options.context, options.stride) {
  if (windows_.size() == 0) {
    throw DataError(
        fmt::format("TokenizedText: {}: the split \"{}\" has {} tokens; one window and its target "
                    "need {}",
                    options.file,
                    options.split,
                    tokens_.size(),
                    options.context + 1));
  }
}

StateDict TokenizedText::fitted() const {
  return {
      {"type", "TokenizedText"}, {"size", vocabulary_.size()}, {"digest", vocabulary_.digest()}};
}

void TokenizedText::take_fitted(const StateDict& fitted) {
  detail::require_learnt_by("TokenizedText", fitted);
  if (fitted.at("digest").as_int() != vocabulary_.digest()) {
    throw DataError(
        fmt::format("TokenizedText: training had another vocabulary, of {} tokens, than {}, of {}",
                    fitted.at("size").as_int(),
                    options_.vocabulary,
                    vocabulary_.size()));
  }
}

Sample TokenizedText::get(int64_t index) const {
  return detail::only_sample(get_batch({index}));
}

Batch TokenizedText::get_batch(const std::vector<int64_t>& indices) const {
  return windows_.gather(tokens_.data(), indices);
}

std::optional<int64_t> TokenizedText::end_of_text() const {
  return end_token(options_, vocabulary_);
}

DatasetFacts TokenizedText::facts() const {
  DatasetFacts facts;
  facts.vocabulary = vocabulary_.size();
  return facts;
}

void register_tokenized_text(Registry<DataSource>& registry) {
  using Options = TokenizedText::Options;
  registry
      .add<TokenizedText>(
          "TokenizedText",
          "Text files as packed windows of a vocabulary's tokens." + not_built_note("PCRE2"))
      .key("file", &Options::file, "name, path or glob of the texts")
      .required()
      .key("vocabulary", &Options::vocabulary, "folder with vocab.json and merges.txt, as GPT-2's")
      .required()
      .key("context", &Options::context, at_least(1), "tokens of a window")
      .key("stride",
           &Options::stride,
           at_least(1),
           "tokens from one window to the next; context when absent")
      .key("split",
           &Options::split,
           one_of({"train", "val"}),
           "the beginning of the tokens, or their end")
      .key("val_fraction",
           &Options::val_fraction,
           between(0, 1),
           "share of the tokens that is split \"val\", at their end")
      .key("separator",
           &Options::separator,
           "what stands between documents in a file; none: a file is one document")
      .key("end_of_text",
           &Options::end_of_text,
           "token after each document; when absent the vocabulary's own, where it has one")
      .key("data_dir", &Options::data_dir, "directory of the files; else RONDO_DATA")
      .key("folder", &Options::folder, "folder of data_dir that is searched too");
}

}  // namespace rondo
