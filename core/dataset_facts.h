#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/factory.h"
#include "core/state_dict.h"

namespace rondo {

/// What a data set tells a model that is built for it. Absent or empty: it does not know.
struct DatasetFacts {
  /// One number to predict: what was done with it, so that predictions can be given back.
  struct Target {
    std::string name;
    bool is_log = false;  ///< sign(x) · log(1 + |x|) came first
    double shift = 0.0;   ///< then it was subtracted
    double factor = 1.0;  ///< and this divided

    /// A value in the units of the data.
    double original(double scaled) const;
  };

  std::optional<int64_t> features = {};          ///< numbers in "features" of a sample
  std::vector<std::string> feature_names = {};   ///< of these numbers
  std::vector<int64_t> categories = {};          ///< codes of each column of "categories"
  std::vector<std::string> category_names = {};  ///< of these columns
  std::optional<int64_t> classes = {};
  std::vector<std::string> class_names = {};  ///< by number; empty: the numbers themselves
  std::vector<double> class_weights = {};     ///< rows / (classes · rows of the class)
  std::vector<Target> targets = {};           ///< of a regression
  std::vector<int64_t> image_shape = {};      ///< channels, height, width
  std::optional<int64_t> vocabulary = {};     ///< number of tokens
};

/// What an option of this name stands for: "features", "classes", "vocabulary", "channels", or
/// "image_size" of square pictures; nothing when the data does not know it.
std::optional<int64_t> size_named(std::string_view option, const DatasetFacts& facts);

/// As a checkpoint holds it, and back. \throws CheckpointError  for another state
StateDict to_state(const DatasetFacts& facts);
DatasetFacts facts_from(const StateDict& state);

/// Describes a `T` for data that is known: options that are "auto" are filled in.
/// \throws UsageError  naming the option and the fact that is not known
template <class T,
          class Facts,
          class = std::enable_if_t<std::is_same_v<Facts, DatasetFacts>>>  // no braces
Factory<FamilyOf<T>> use(const Facts& facts, typename T::Options options = {}) {
  T::resolve(options, facts);
  return use<T>(std::move(options));
}

}  // namespace rondo
