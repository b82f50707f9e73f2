#include "cli/reference_pages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/component_examples.h"
#include "cli/families.h"
#include "data/optional_reader.h"
#include "trainer/run_config.h"
#include "trainer/section_reader.h"

namespace rondo {

namespace {

constexpr std::string_view kOrigin = "`rondo describe --write=docs/reference` writes this page.";
constexpr std::string_view kTrainerPage = "trainer.md";

/// The page of a family.
struct FamilyPage {
  std::string_view family;
  std::string_view file;
  std::string_view title;
  std::string_view where;  ///< how a config names a component
};

constexpr FamilyPage kPages[] = {
    {"model", "models.md", "Models", "`model` of `[trainer.init]` names one."},
    {"loss function", "losses.md", "Losses", "`loss` of a model names one."},
    {"dataset",
     "datasets.md",
     "Data sets",
     "A [loader](trainer.md#loaders) names one as `dataset`, with its keys and those of the loader "
     "in one table."},
    {"optimizer", "optimizers.md", "Optimizers", "`[trainer.init.optimizer]` names one."},
    {"scheduler",
     "schedulers.md",
     "Schedulers",
     "`schedulers` of `[trainer.init]` lists them. [schedules.md](../schedules.md) has their "
     "formulas."},
    {"sparsity algorithm",
     "sparsity.md",
     "Sparsity algorithms",
     "`algorithm` of `[trainer.init.sparsity]` names one: [sparsity.md](../sparsity.md)."},
    {"step",
     "steps.md",
     "Steps",
     "`[trainer.init.step]` names the body of a training step: [own_steps.md](../own_steps.md)."},
    {"metric",
     "metrics.md",
     "Metrics",
     "`metrics` and `train_metrics` of `[trainer.init]` list them, and so does the callback "
     "`Evaluator`."},
    {"algorithm",
     "algorithms.md",
     "Algorithms",
     "`algorithms` of `[trainer.init]` lists them, in the order in which they act: "
     "[algorithms.md](../algorithms.md)."},
    {"callback",
     "callbacks.md",
     "Callbacks",
     "`callbacks` of `[trainer.init]` lists them. `NAME = true` takes every default, and `NAME = "
     "false` removes one that runs have by default."},
    {"logger",
     "loggers.md",
     "Loggers",
     "`loggers` of `[trainer.init]` lists them. `NAME = true` takes every default, and `NAME = "
     "false` removes one that runs have by default."},
    {"core callback",
     "slots.md",
     "Core callbacks",
     "`[trainer.init.slots]` names those that replace rondo's."}};

/// A description without what depends on the libraries of this build.
std::string without_build_notes(std::string text) {
  for (const OptionalReader& reader : optional_readers()) {
    const std::string note = not_built_note(reader.name);
    const size_t at = note.empty() ? std::string::npos : text.find(note);
    if (at != std::string::npos) {
      text.erase(at, note.size());
    }
  }
  return text;
}

/// Text in which Markdown finds no markup but code.
std::string markdown(std::string_view text) {
  std::string escaped;
  bool is_code = false;
  for (const char c : text) {
    is_code = is_code != (c == '`');
    const bool is_markup = c == '|' || (!is_code && (c == '*' || c == '<'));
    escaped += is_markup ? std::string("\\") + c : std::string(1, c);
  }
  return escaped;
}

std::string markdown_code(std::string_view text) {
  return text.empty() ? "" : fmt::format("`{}`", markdown(fmt::format("`{}", text)).substr(1));
}

std::string anchor_of(std::string text) {
  std::transform(
      text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// What a check asks for: `out of "a", "b"` is a list of the words.
std::string shown_range(const std::string& check) {
  const std::string words = "out of ";
  return check.rfind(words, 0) == 0 ? check.substr(words.size()) : check;
}

std::string key_row(const OptionKey& key, const std::string& name, const ConfigValue* value) {
  const bool has_default = value != nullptr && !key.is_required && key.nested.empty();
  return fmt::format(
      "| {} | {} | {} | {} | {} |\n",
      markdown_code(name),
      markdown(key.type),
      markdown(shown_range(key.check)),
      key.is_required ? "required" : markdown_code(has_default ? value->to_text() : ""),
      markdown(without_build_notes(key.doc)));
}

/// A row a key; those of a nested table after it, with its name in front.
std::string key_rows(const std::vector<OptionKey>& keys,
                     const ConfigTable& defaults,
                     const std::string& scope = "") {
  std::string text;
  for (const OptionKey& key : keys) {
    const ConfigValue* const value = defaults.find(key.name);
    const auto* const inner = value != nullptr ? value->get_if<ConfigTable>() : nullptr;
    text += key_row(key, scope + key.name, value);
    text += key_rows(key.nested, inner != nullptr ? *inner : ConfigTable{}, scope + key.name + ".");
  }
  return text;
}

std::string key_table(const std::vector<OptionKey>& keys, const ConfigTable& defaults) {
  return keys.empty() ? "It has no keys.\n\n"
                      : "| key | type | range | default | meaning |\n|---|---|---|---|---|\n" +
                            key_rows(keys, defaults) + "\n";
}

std::string example_block(std::string_view family, std::string_view name) {
  const std::string text = example_of(family, name);
  return text.empty() ? "" : fmt::format("```toml\n{}```\n\n", text);
}

std::string page_head(std::string_view title, std::string_view where) {
  return fmt::format("# {}\n\n{} {}\n\n", title, kOrigin, where);
}

/// Pages end with one line break.
std::string trimmed(std::string page) {
  page.erase(page.find_last_not_of('\n') + 1);
  return page + "\n";
}

template <class Base>
std::string page_of(const Registry<Base>& registry, const FamilyPage& page) {
  std::string list = "| name | what it is |\n|---|---|\n";
  std::string sections;
  for (const auto& entry : registry.entries()) {
    const std::string doc = markdown(without_build_notes(entry.doc));
    list += fmt::format("| [{0}](#{1}) | {2} |\n", entry.name, anchor_of(entry.name), doc);
    sections += fmt::format("## {}\n\n{}\n\n", entry.name, doc) +
                key_table(keys_of<Base>(entry), entry.defaults()) +
                example_block(registry.family(), entry.name);
  }
  return trimmed(page_head(page.title, page.where) + list + "\n" + sections);
}

/// `[trainer.init]`: its keys, then each of its tables.
std::string text_of_init(const Registries& registries) {
  const KeyTable<TrainerOptions> keys = trainer_keys(registries);
  const TrainerOptions options = config_defaults(registries);
  ConfigTable defaults = keys.write(&options);
  std::vector<OptionKey> all = keys.keys();
  std::string tables;
  for (OptionKey& key : all) {
    const ConfigValue* const value = defaults.find(key.name);
    const auto* const inner = value != nullptr ? value->get_if<ConfigTable>() : nullptr;
    if (!key.nested.empty()) {
      tables += fmt::format("## trainer.init.{}\n\n`[trainer.init.{}]`: {}.\n\n",
                            key.name,
                            key.name,
                            markdown(key.doc)) +
                key_table(key.nested, inner != nullptr ? *inner : ConfigTable{}) +
                example_block("trainer", key.name);
      key.nested.clear();
      defaults.erase(key.name);
      key.doc += fmt::format(": [below](#trainerinit{})", key.name);
    }
  }
  return "## trainer.init\n\n`[trainer.init]` describes the run.\n\n" + key_table(all, defaults) +
         example_block("trainer", "init") + tables;
}

std::string text_of_loaders() {
  std::vector<OptionKey> keys(2);
  keys[0].name = "dataset";
  keys[0].type = "a string";
  keys[0].is_required = true;
  keys[0].doc = "name of a [data set](datasets.md), whose keys are in the same table";
  keys[1].name = "label";
  keys[1].type = "a string";
  keys[1].doc = "scope of the loader's metrics, by which other sections can refer to it";
  const KeyTable<LoaderOptions> batching = loader_keys();
  keys.insert(keys.end(), batching.keys().begin(), batching.keys().end());
  const LoaderOptions defaults;
  return "## Loaders\n\nA loader is a data set and how it becomes batches.\n\n" +
         key_table(keys, batching.write(&defaults)) + example_block("trainer", "loader");
}

std::string trainer_page(const Registries& registries) {
  std::string text =
      page_head("The run file", "A file has the table `[trainer.init]` and at least one section.") +
      text_of_init(registries) + text_of_loaders();
  for (const RunSection& section : run_sections()) {
    text +=
        fmt::format(
            "## trainer.{0}\n\n`[trainer.{0}]`: {1}.\n\n", section.name, markdown(section.doc)) +
        key_table(section.keys, {}) + example_block("trainer", section.name);
  }
  return trimmed(std::move(text));
}

/// What docs/reference begins with: every component by name, with a link.
template <class Base>
std::string index_row(const Registry<Base>& registry, const FamilyPage& page) {
  std::vector<std::string> links;
  for (const auto& entry : registry.entries()) {
    links.push_back(fmt::format("[{}]({}#{})", entry.name, page.file, anchor_of(entry.name)));
  }
  return fmt::format("| [{}]({}) | {} |\n", page.title, page.file, fmt::join(links, ", "));
}

const FamilyPage& page_of_family(const std::string& family) {
  return *std::find_if(std::begin(kPages), std::end(kPages), [&](const FamilyPage& page) {
    return page.family == family;
  });
}

}  // namespace

std::map<std::string, std::string> reference_pages(const Registries& registries) {
  std::map<std::string, std::string> pages;
  std::string index = page_head("Reference",
                                "It has every component that a run file can name. [The run "
                                "file](trainer.md) has its tables and sections.") +
                      "| page | components |\n|---|---|\n";
  for_each_family(registries, [&](const auto& registry) {
    if (!registry.entries().empty()) {
      const FamilyPage& page = page_of_family(registry.family());
      pages[std::string(page.file)] = page_of(registry, page);
      index += index_row(registry, page);
    }
  });
  pages[std::string(kTrainerPage)] = trainer_page(registries);
  pages["README.md"] = index;
  return pages;
}

}  // namespace rondo
