#include "checkpoint/internal/state_writer.h"

#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unordered_set>
#include <utility>

#include "checkpoint/internal/malformed.h"
#include "checkpoint/internal/pickle_writer.h"
#include "checkpoint/internal/storage_plan.h"
#include "checkpoint/internal/storage_types.h"
#include "core/utf8.h"

namespace rondo::detail {

namespace {

/// Where the walk through a state is, for messages; and how deep.
class Trail {
 public:
  template <class Visit>
  void inside(const std::string& name, const Visit& visit) {
    names_.push_back(name);
    if (names_.size() > kDeepestState) {
      fail(fmt::format("is nested deeper than {} levels", kDeepestState));
    }
    visit();
    names_.pop_back();
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Malformed(
        fmt::format("entry {}: {}", in_quotes(fmt::format("{}", fmt::join(names_, "/"))), what));
  }

 private:
  std::vector<std::string> names_;
};

/// Lists the tensors of a state, in the order in which they are pickled, ready to be saved.
class TensorCollector {
 public:
  void collect(const StateDict& dict) {
    std::unordered_set<std::string_view> names;
    for (const auto& [name, value] : dict.items()) {
      trail_.inside(name, [&, &name = name, &value = value] {
        if (!names.insert(name).second) {
          trail_.fail("there are two of this name");
        }
        check_text(name);
        collect(value);
      });
    }
  }

  std::vector<at::Tensor> take() { return std::move(tensors_); }

 private:
  void collect(const StateValue& value) {
    if (value.is_dict()) {
      collect(value.as_dict());
    } else if (const auto* list = std::get_if<StateList>(&value.variant())) {
      for (size_t i = 0; i < list->size(); ++i) {
        trail_.inside(std::to_string(i), [&] { collect((*list)[i]); });
      }
    } else if (const auto* number = std::get_if<double>(&value.variant())) {
      tensors_.push_back(at::scalar_tensor(*number, at::kDouble));
    } else if (const auto* text = std::get_if<std::string>(&value.variant())) {
      check_text(*text);
    } else if (value.is_tensor()) {
      tensors_.push_back(savable(value.as_tensor()));
    }
  }

  void check_text(const std::string& text) const {
    if (!is_utf8(text)) {  // Python could not read the whole file
      trail_.fail("a text that is not UTF-8; save bytes as a uint8 tensor");
    }
  }

  at::Tensor savable(const at::Tensor& tensor) const {
    if (!tensor.defined()) {
      trail_.fail("an undefined tensor");
    }
    if (tensor.layout() != at::kStrided || tensor.is_quantized() || tensor.is_meta() ||
        !tensor.has_storage()) {
      trail_.fail(
          "a sparse, quantised or otherwise special tensor; save its parts, or make it dense");
    }
    if (storage_class(tensor.scalar_type()).empty()) {
      trail_.fail(fmt::format("a tensor of {}, for which there is no storage class in PyTorch 1.13",
                              c10::toString(tensor.scalar_type())));
    }
    return tensor.detach().resolve_conj().resolve_neg();
  }

  Trail trail_;
  std::vector<at::Tensor> tensors_;
};

/// Writes values; each tensor takes the next placement.
class StatePickler {
 public:
  explicit StatePickler(const std::vector<TensorPlacement>& placements)
      : next_(placements.begin()) {}

  std::string pickle(const StateDict& state) {
    write(state);
    return out_.finish();
  }

 private:
  void write(const StateDict& dict) {
    out_.op(Op::EmptyDict);
    out_.op(Op::Mark);
    for (const auto& [name, value] : dict.items()) {
      out_.text(name);
      write(value);
    }
    out_.op(Op::SetItems);
  }

  void write(const StateValue& value) {
    if (value.is_none()) {
      out_.none();
    } else if (value.is_dict()) {
      write(value.as_dict());
    } else if (const auto* list = std::get_if<StateList>(&value.variant())) {
      write(*list);
    } else if (const auto* flag = std::get_if<bool>(&value.variant())) {
      out_.boolean(*flag);
    } else if (const auto* integer = std::get_if<int64_t>(&value.variant())) {
      out_.integer(*integer);
    } else if (const auto* text = std::get_if<std::string>(&value.variant())) {
      out_.text(*text);
    } else {
      write(*next_++);  // a tensor, or a float as one
    }
  }

  void write(const StateList& list) {
    out_.op(Op::EmptyList);
    out_.op(Op::Mark);
    for (const StateValue& value : list) {
      write(value);
    }
    out_.op(Op::Appends);
  }

  /// torch._utils._rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks)
  void write(const TensorPlacement& tensor) {
    out_.global("torch._utils", "_rebuild_tensor_v2");
    out_.op(Op::Mark);
    write_storage(tensor);
    out_.integer(tensor.offset);
    out_.integers(tensor.sizes);
    out_.integers(tensor.strides);
    out_.boolean(false);
    out_.global("collections", "OrderedDict");
    out_.op(Op::EmptyTuple);
    out_.op(Op::Reduce);
    out_.op(Op::Tuple);
    out_.op(Op::Reduce);
  }

  /// The persistent id ("storage", class, key, device, elements).
  void write_storage(const TensorPlacement& tensor) {
    out_.op(Op::Mark);
    out_.text("storage");
    out_.global("torch", storage_class(tensor.type));
    out_.text(std::to_string(tensor.record));
    out_.text("cpu");
    out_.integer(tensor.record_numel);
    out_.op(Op::Tuple);
    out_.op(Op::PersistentId);
  }

  PickleWriter out_;
  std::vector<TensorPlacement>::const_iterator next_;
};

}  // namespace

PickledState pickle_state(const StateDict& state) {
  TensorCollector collector;
  collector.collect(state);
  StoragePlan plan = plan_storages(collector.take());
  std::string pickle = StatePickler(plan.tensors).pickle(state);
  if (pickle.size() > kLargestPickle) {
    throw Malformed("the state has too many entries: data.pkl would be larger than 256 MiB");
  }
  const StateValue* step = state.find("global_step");
  const auto* number = step != nullptr ? std::get_if<int64_t>(&step->variant()) : nullptr;
  return {std::move(pickle),
          std::move(plan.records),
          number != nullptr ? std::optional(*number) : std::nullopt};
}

}  // namespace rondo::detail
