#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/state_dict.h"

namespace rondo::detail {

/// What a pickle builds refers to other objects by their place in one list. So a value that stands
/// in several places, or inside itself, is neither copied nor followed while the pickle is read.
using ObjectId = uint32_t;

struct PickleList {
  std::vector<ObjectId> items;
  bool is_tuple = false;
};

/// Rare and by reference: a pickle may have millions of objects, each as large as the largest kind.
using ClassName = std::shared_ptr<const std::string>;

struct PickleDict {
  std::vector<std::pair<ObjectId, ObjectId>> items;
  bool is_ordered = false;    ///< a collections.OrderedDict
  ClassName class_name = {};  ///< of an object, whose attributes these are; null for a dictionary
  std::optional<ObjectId> attributes = {};  ///< a dictionary of more of an object's attributes
};

/// What a pickle names in Python. Of classes and functions that a checkpoint does not need, nothing
/// but the name is known.
struct PickleGlobal {
  enum Kind { OrderedDict, RebuildTensor, RebuildParameter, Size, Storage, Other };

  Kind kind = OrderedDict;
  at::ScalarType type = at::kFloat;  ///< of a Storage
  ClassName name = {};               ///< of an Other
};

/// Elements of a storage, shape [numel]: not yet a tensor of the state.
struct PickleStorage {
  at::Tensor elements;
};

using PickleObject = std::variant<std::monostate,
                                  bool,
                                  int64_t,
                                  double,
                                  std::string,
                                  at::Tensor,
                                  PickleList,
                                  PickleDict,
                                  PickleGlobal,
                                  PickleStorage>;

/// The dictionary `root` as a state: tuples as lists, integer names as decimal text, classes as
/// their names, objects as dictionaries of their attributes, and those that are modules as their
/// tensors by dotted names.
/// \param pickle_size  of the bytes that the objects came from; bounds what they may unfold to
/// \throws Malformed  when it is no dictionary, holds what a state cannot hold, refers to itself,
/// is
///                    nested deeper than 100 levels, or unfolds to far more than the pickle's size
StateDict to_state(const std::vector<PickleObject>& objects, ObjectId root, size_t pickle_size);

}  // namespace rondo::detail
