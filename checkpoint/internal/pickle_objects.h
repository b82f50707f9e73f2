#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
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

struct PickleDict {
  std::vector<std::pair<ObjectId, ObjectId>> items;
  bool is_ordered = false;  ///< a collections.OrderedDict
};

/// The only things in Python that a checkpoint may name.
struct PickleGlobal {
  enum Kind { OrderedDict, RebuildTensor, RebuildParameter, Size, Storage };

  Kind kind = OrderedDict;
  at::ScalarType type = at::kFloat;  ///< of a Storage
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

/// The dictionary `root` as a state: tuples as lists, integer names as decimal text.
/// \param pickle_size  of the bytes that the objects came from; bounds what they may unfold to
/// \throws Malformed  when it is no dictionary, holds what a state cannot hold, refers to itself,
/// is
///                    nested deeper than 100 levels, or unfolds to far more than the pickle's size
StateDict to_state(const std::vector<PickleObject>& objects, ObjectId root, size_t pickle_size);

}  // namespace rondo::detail
