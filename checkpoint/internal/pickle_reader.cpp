#include "checkpoint/internal/pickle_reader.h"

#include <fmt/format.h>

#include <cstring>
#include <unordered_map>
#include <utility>

#include "checkpoint/internal/bytes.h"
#include "checkpoint/internal/pickle_format.h"
#include "core/utf8.h"

namespace rondo::detail {

namespace {

/// The stack machine that a pickle is a program for.
class PickleMachine {
 public:
  PickleMachine(std::string_view bytes, LoadStorage load_storage, OtherClasses other_classes)
      : in_(bytes), calls_(objects_, std::move(load_storage), other_classes) {}

  /// Where the operation that was read last begins.
  size_t position() const { return position_; }

  StateDict run() {
    if (next_op() != Op::Proto || in_.number<uint8_t>() != kPickleProtocol) {
      throw Malformed("not a pickle of protocol 2, torch.save's default");
    }
    const size_t size = in_.left();
    for (Op op = next_op(); op != Op::Stop; op = next_op()) {
      step(op);
    }
    const ObjectId root = pop();
    if (!stack_.empty() || !marks_.empty() || in_.left() > 0) {
      throw Malformed("values or bytes are left over at the end of the pickle");
    }
    return to_state(objects_, root, size);
  }

 private:
  Op next_op() {
    position_ = in_.position();
    return static_cast<Op>(in_.number<uint8_t>());
  }

  /// The table of all operations that are read.
  void step(Op op) {  // NOLINT(readability-function-size): a line or two an operation
    switch (op) {
      case Op::None:
        return push(std::monostate());
      case Op::True:
        return push(true);
      case Op::False:
        return push(false);
      case Op::Uint8:
        return push(int64_t{in_.number<uint8_t>()});
      case Op::Uint16:
        return push(int64_t{in_.number<uint16_t>()});
      case Op::Int32:
        return push(int64_t{static_cast<int32_t>(in_.number<uint32_t>())});
      case Op::Long:
        return push(long_integer());
      case Op::Float:
        return push(big_endian_double());
      case Op::Text:
        return push(text());
      case Op::Mark:
        return marks_.push_back(stack_.size());
      case Op::EmptyTuple:
        return push(PickleList{{}, true});
      case Op::Tuple1:
        return push(PickleList{pop(1), true});
      case Op::Tuple2:
        return push(PickleList{pop(2), true});
      case Op::Tuple3:
        return push(PickleList{pop(3), true});
      case Op::Tuple:
        return push(PickleList{pop_to_mark(), true});
      case Op::EmptyList:
        return push(PickleList{});
      case Op::Append:
        return append(pop(1));
      case Op::Appends:
        return append(pop_to_mark());
      case Op::EmptyDict:
        return push(PickleDict{});
      case Op::SetItem:
        return set_items(pop(2));
      case Op::SetItems:
        return set_items(pop_to_mark());
      case Op::Put:
        return put(in_.number<uint8_t>());
      case Op::LongPut:
        return put(in_.number<uint32_t>());
      case Op::Get:
        return get(in_.number<uint8_t>());
      case Op::LongGet:
        return get(in_.number<uint32_t>());
      case Op::Global:
        return global();
      case Op::PersistentId:
        return push(calls_.persistent(objects_[pop()]));
      case Op::Reduce:
      case Op::NewObject:
        return reduce();
      case Op::Build:
        return build();
      default:
        throw Malformed(fmt::format("the operation 0x{:02x} is not read", unsigned(op)));
    }
  }

  void push(PickleObject object) {
    objects_.push_back(std::move(object));
    stack_.push_back(static_cast<ObjectId>(objects_.size() - 1));
  }

  size_t stack_bottom() const { return marks_.empty() ? 0 : marks_.back(); }

  /// The last `count` objects, which must lie above the last mark.
  std::vector<ObjectId> pop(size_t count) {
    if (stack_.size() - stack_bottom() < count) {
      throw Malformed("an operation without its operands");
    }
    std::vector<ObjectId> popped(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return popped;
  }

  ObjectId pop() { return pop(1).front(); }

  std::vector<ObjectId> pop_to_mark() {
    if (marks_.empty()) {
      throw Malformed("an operation without its mark");
    }
    std::vector<ObjectId> popped = pop(stack_.size() - marks_.back());
    marks_.pop_back();
    return popped;
  }

  /// The object on top of the stack, which stays there.
  ObjectId top() const {
    if (stack_.size() == stack_bottom()) {
      throw Malformed("an operation without its operand");
    }
    return stack_.back();
  }

  template <class T>
  T& top_as(const char* what) {
    if (T* value = std::get_if<T>(&objects_[top()])) {
      return *value;
    }
    throw Malformed(fmt::format("expected {}", what));
  }

  int64_t long_integer() {
    const std::string_view bytes = in_.take(in_.number<uint8_t>());
    if (bytes.size() > sizeof(int64_t)) {
      throw Malformed("an integer that does not fit into 64 bits");
    }
    const bool is_negative = !bytes.empty() && (bytes.back() & 0x80) != 0;
    uint64_t value = is_negative ? ~uint64_t{0} : 0;
    for (size_t i = bytes.size(); i-- > 0;) {
      value = value << 8 | static_cast<unsigned char>(bytes[i]);
    }
    return static_cast<int64_t>(value);
  }

  double big_endian_double() {
    uint64_t bits = 0;
    for (const char byte : in_.take(sizeof bits)) {
      bits = bits << 8 | static_cast<unsigned char>(byte);
    }
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

  std::string text() {
    const std::string_view bytes = in_.take(in_.number<uint32_t>());
    if (!is_utf8(bytes)) {
      throw Malformed("a text that is not UTF-8");
    }
    return std::string(bytes);
  }

  void append(const std::vector<ObjectId>& items) {
    if (const auto* object = std::get_if<PickleDict>(&objects_[top()]);
        object != nullptr && object->class_name != nullptr) {
      return;  // a list of some class: its elements are no attributes
    }
    auto& list = top_as<PickleList>("a list to append to");
    if (list.is_tuple) {
      throw Malformed("a tuple cannot grow");
    }
    list.items.insert(list.items.end(), items.begin(), items.end());
  }

  void set_items(const std::vector<ObjectId>& items) {
    auto& dict = top_as<PickleDict>("a dictionary to fill");
    if (items.size() % 2 != 0) {
      throw Malformed("a name without a value");
    }
    for (size_t i = 0; i < items.size(); i += 2) {
      dict.items.emplace_back(items[i], items[i + 1]);
    }
  }

  void put(uint32_t index) { memo_[index] = top(); }

  void get(uint32_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) {
      throw Malformed(fmt::format("nothing was remembered as {}", index));
    }
    stack_.push_back(found->second);
  }

  void global() {
    const std::string_view module = in_.line();
    push(calls_.global(module, in_.line()));
  }

  void reduce() {
    const std::vector<ObjectId> operands = pop(2);
    push(calls_.call(objects_[operands[0]], objects_[operands[1]]));
  }

  /// The attributes of an OrderedDict, such as a Module's _metadata, are no part of the state.
  void build() {
    const ObjectId attributes = pop();
    auto& dict = top_as<PickleDict>("an OrderedDict to give attributes to");
    if (!dict.is_ordered && dict.class_name == nullptr) {
      throw Malformed("attributes for something that is not an OrderedDict");
    }
    if (!dict.is_ordered) {
      dict.attributes = attributes;
    }
  }

  ByteReader in_;
  size_t position_ = 0;
  std::vector<PickleObject> objects_;
  PickleCalls calls_;
  std::vector<ObjectId> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint32_t, ObjectId> memo_;
};

}  // namespace

StateDict read_pickle(std::string_view bytes,
                      FilePlace place,
                      LoadStorage load_storage,
                      OtherClasses other_classes) {
  PickleMachine machine(bytes, std::move(load_storage), other_classes);
  try {
    return machine.run();
  } catch (const Malformed& error) {
    place.offset += machine.position();
    fail_at(place, error.what());
  }
}

}  // namespace rondo::detail
