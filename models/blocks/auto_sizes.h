#pragma once

#include <fmt/format.h>

#include <cstdint>

#include "core/auto_option.h"
#include "core/dataset_facts.h"
#include "core/error.h"
#include "core/require.h"

namespace rondo::detail {

/// An option of a model that the data may give: a number >= 1.
template <class Options>
struct AutoSize {
  const char* name;
  Auto<int64_t> Options::*size;
};

/// What is "auto" has no number yet. \throws UsageError  naming one below 1
template <class Options, class Sizes>
void check_sizes(const char* model, const Sizes& sizes, const Options& options) {
  for (const AutoSize<Options>& option : sizes) {
    const int64_t size = (options.*option.size).given.value_or(1);
    require(size >= 1, fmt::format("{}: {}", model, option.name), ">= 1", size);
  }
}

/// For constructors: the options, of which none is "auto".
/// \throws UsageError  naming one that is
template <class Options, class Sizes>
const Options& resolved(const char* model, const Sizes& sizes, const Options& options) {
  for (const AutoSize<Options>& option : sizes) {
    if ((options.*option.size).is_auto()) {
      throw UsageError(
          fmt::format("{0}: {1} is \"auto\": give it, or build the model for its data, "
                      "use<{0}>(loader.facts())",
                      model,
                      option.name));
    }
  }
  return options;
}

/// Fills in what is "auto". \throws UsageError  naming an option that the data does not know
template <class Options, class Sizes>
void resolve_sizes(const char* model,
                   const Sizes& sizes,
                   Options& options,
                   const DatasetFacts& facts) {
  for (const AutoSize<Options>& option : sizes) {
    Auto<int64_t>& size = options.*option.size;
    if (size.is_auto()) {
      size.given = size_named(option.name, facts);
    }
    if (size.is_auto()) {
      throw UsageError(fmt::format(
          "{0}: {1} is \"auto\", and the data does not know its {1}; give it", model, option.name));
    }
  }
}

}  // namespace rondo::detail
