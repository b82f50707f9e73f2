#include "checkpoint/internal/pickle_calls.h"

#include <fmt/format.h>

#include "checkpoint/internal/malformed.h"
#include "checkpoint/internal/storage_loader.h"
#include "checkpoint/internal/storage_types.h"

namespace rondo::detail {

namespace {

template <class T>
const T& get_as(const PickleObject& object, const char* what) {
  if (const T* value = std::get_if<T>(&object)) {
    return *value;
  }
  throw Malformed(fmt::format("expected {}", what));
}

const std::vector<ObjectId>& tuple_items(const PickleObject& object, const char* what) {
  const auto& list = get_as<PickleList>(object, what);
  if (!list.is_tuple) {
    throw Malformed(fmt::format("expected {}", what));
  }
  return list.items;
}

/// Functions of PyTorch that make tensors of kinds that are not read: without their result the
/// model would lack one.
bool makes_tensor(std::string_view module) {
  return module == "torch._utils" || module == "torch._tensor";
}

}  // namespace

template <class T>
const T& PickleCalls::get(ObjectId id, const char* what) const {
  return get_as<T>(objects_[id], what);
}

PickleGlobal PickleCalls::global(std::string_view module, std::string_view name) const {
  if (module == "collections" && name == "OrderedDict") {
    return {PickleGlobal::OrderedDict};
  }
  if (module == "torch._utils" && name == "_rebuild_tensor_v2") {
    return {PickleGlobal::RebuildTensor};
  }
  if (module == "torch._utils" && name == "_rebuild_parameter") {
    return {PickleGlobal::RebuildParameter};
  }
  if (module == "torch" && name == "Size") {
    return {PickleGlobal::Size};
  }
  if (module == "torch") {
    if (const auto type = type_of_storage_class(name)) {
      return {PickleGlobal::Storage, *type};
    }
  }
  if (other_classes_ == OtherClasses::Inert && !makes_tensor(module)) {
    return {PickleGlobal::Other,
            at::kFloat,
            std::make_shared<const std::string>(fmt::format("{}.{}", module, name))};
  }
  throw Malformed(
      fmt::format("the file asks for {}, which is not loaded: a checkpoint holds dense tensors, "
                  "numbers, texts, "
                  "lists and dictionaries, such as a state_dict()",
                  in_quotes(fmt::format("{}.{}", module, name))));
}

PickleObject PickleCalls::persistent(const PickleObject& id) const {
  const auto& tuple = tuple_items(id, "a tuple that names a storage");
  if (tuple.size() != 5 || get<std::string>(tuple[0], "the word \"storage\"") != "storage") {
    throw Malformed("expected (\"storage\", class, key, device, elements)");
  }
  const auto& storage = get<PickleGlobal>(tuple[1], "the class of a storage");
  if (storage.kind != PickleGlobal::Storage) {
    throw Malformed("expected the class of a storage");
  }
  return PickleStorage{load_storage_(storage.type,
                                     get<std::string>(tuple[2], "the key of a storage"),
                                     get<int64_t>(tuple[4], "the size of a storage"))};
}

PickleObject PickleCalls::call(const PickleObject& function, const PickleObject& arguments) const {
  const auto& global = get_as<PickleGlobal>(function, "something that can be called");
  const auto kind = global.kind;
  if (kind == PickleGlobal::Other) {
    return PickleDict{{}, false, global.name};
  }
  const auto& list = tuple_items(arguments, "a tuple of arguments");
  if (kind == PickleGlobal::OrderedDict && list.empty()) {
    return PickleDict{{}, true};
  }
  if (kind == PickleGlobal::Size && list.size() == 1) {
    integers(list[0]);  // throws when it is not a tuple of sizes
    return get<PickleList>(list[0], "a tuple of sizes");
  }
  if (kind == PickleGlobal::RebuildParameter && !list.empty()) {
    return get<at::Tensor>(list[0], "the tensor of a parameter");
  }
  if (kind == PickleGlobal::RebuildTensor) {
    return rebuild_tensor(list);
  }
  throw Malformed("a call with other arguments than torch.save writes");
}

/// storage, offset, sizes, strides, requires_grad, hooks and, when it has any, metadata. The last
/// ones say nothing about the values and are passed over, but for metadata: that of a conjugate.
PickleObject PickleCalls::rebuild_tensor(const std::vector<ObjectId>& arguments) const {
  if (arguments.size() < 6 || arguments.size() > 7) {
    throw Malformed("a tensor with other arguments than torch.save writes");
  }
  if (arguments.size() == 7 && !std::holds_alternative<std::monostate>(objects_[arguments[6]])) {
    throw Malformed("a tensor with metadata; save its .resolve_conj().resolve_neg()");
  }
  return view_of_storage(get<PickleStorage>(arguments[0], "the storage of a tensor").elements,
                         get<int64_t>(arguments[1], "the offset of a tensor"),
                         integers(arguments[2]),
                         integers(arguments[3]));
}

std::vector<int64_t> PickleCalls::integers(ObjectId tuple) const {
  const std::vector<ObjectId>& items = tuple_items(objects_[tuple], "a tuple of integers");
  if (items.size() > kMostDimensions) {  // also keeps a short pickle from copying a long list often
    throw Malformed(fmt::format(
        "a tensor of {} dimensions; at most {} are read", items.size(), kMostDimensions));
  }
  std::vector<int64_t> values;
  for (const ObjectId item : items) {
    values.push_back(get<int64_t>(item, "an integer"));
  }
  return values;
}

}  // namespace rondo::detail
