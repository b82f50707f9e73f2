#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/run_config.h"

namespace rondo {

/// A section of a file that runs something, such as [trainer.fit], with its keys for describing.
struct RunSection {
  std::string name;
  std::string doc;
  std::vector<OptionKey> keys;
};

/// Every section, each with all its keys.
const std::vector<RunSection>& run_sections();

/// Reads the sections of a file that run something; remembers loaders by label for those that
/// follow. A label stands once in a list, and names one loader wherever it is referred to.
class SectionReader {
 public:
  SectionReader(const Registries& registries, FaultSink& faults)
      : registries_(registries), faults_(faults) {}

  std::optional<RunConfig::Fit> fit(const ConfigTable& section, const SourcePosition& at);
  std::optional<RunConfig::Validate> validate(const ConfigTable& section, const SourcePosition& at);
  std::optional<RunConfig::ValidateAll> validate_all(const ConfigTable& section);
  std::optional<RunConfig::Predict> predict(const ConfigTable& section, const SourcePosition& at);

  /// The sections with every default, for the resolved config.
  const ConfigTable& resolved() const { return resolved_; }

 private:
  std::optional<DataLoader> loader(const ConfigValue& value,
                                   FaultSink& faults,
                                   ConfigValue& resolved);
  std::optional<std::pair<DataLoader, LoadFrom>> single_loader(const char* name,
                                                               const char* key,
                                                               const ConfigTable& section,
                                                               const SourcePosition& at);
  /// The key `subset_num_batches` of the section `name`.
  std::optional<int64_t> subset_of(const char* name, const ConfigTable& section);
  std::optional<DataLoader> labelled(const std::string& label,
                                     const ConfigValue& value,
                                     FaultSink& faults) const;
  Loaders loaders(const ConfigTable& section,
                  const char* key,
                  FaultSink& faults,
                  ConfigTable& resolved);
  LoadFrom from(const ConfigTable& section, FaultSink& faults) const;

  /// Keeps a loader that has a label, as `resolved` describes it.
  void remember(const DataLoader& loader, const ConfigValue& resolved, const SourcePosition& at);

  struct Labelled {
    DataLoader loader;
    std::string text;  ///< with every default: what makes two definitions the same
    SourcePosition at;
    bool is_one;  ///< no other section defines another loader under the label
  };

  const Registries& registries_;
  FaultSink& faults_;
  std::map<std::string, Labelled> by_label_;
  ConfigTable resolved_;
};

/// A fault for each key of `table` that is not among `known`, with a suggestion.
void refuse_unknown(const ConfigTable& table,
                    const std::vector<std::string>& known,
                    FaultSink& faults);

}  // namespace rondo
