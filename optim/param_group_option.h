#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config_value.h"
#include "optim/optimizer.h"

namespace rondo {

/// How a config writes an optimizer's groups:
/// `params = [{ params = ["*.bias"], weight_decay = 0.0, tag = "no_decay" }]`. For
/// `KeyTable::key_of`.
class ParamGroupListOption {
 public:
  /// \param numbers  names of the optimizer's numbers; any other key is a fault
  explicit ParamGroupListOption(std::vector<std::string> numbers) : numbers_(std::move(numbers)) {}

  std::string name() const { return "a list of tables with params (globs), tag and numbers"; }

  std::optional<std::vector<ParamGroupOptions>> read(const ConfigValue& value,
                                                     FaultSink& faults) const;
  ConfigValue write(const std::vector<ParamGroupOptions>& groups) const;

 private:
  ParamGroupOptions read_group(const ConfigValue& value, FaultSink& faults) const;

  std::vector<std::string> numbers_;
};

}  // namespace rondo
