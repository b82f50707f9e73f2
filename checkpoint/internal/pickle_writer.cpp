#include "checkpoint/internal/pickle_writer.h"

#include <limits>
#include <utility>

#include "checkpoint/internal/bytes.h"

namespace rondo::detail {

PickleWriter::PickleWriter() {
  op(Op::Proto);
  put(bytes_, kPickleProtocol);
}

void PickleWriter::integer(int64_t value) {
  if (value >= 0 && value <= std::numeric_limits<uint8_t>::max()) {
    op(Op::Uint8);
    put(bytes_, static_cast<uint8_t>(value));
  } else if (value >= std::numeric_limits<int32_t>::min() &&
             value <= std::numeric_limits<int32_t>::max()) {
    op(Op::Int32);
    put(bytes_, static_cast<uint32_t>(value));
  } else {
    op(Op::Long);
    put(bytes_, uint8_t{sizeof value});
    put(bytes_, static_cast<uint64_t>(value));
  }
}

void PickleWriter::text(std::string_view utf8) {
  op(Op::Text);
  put(bytes_, static_cast<uint32_t>(utf8.size()));
  bytes_ += utf8;
}

void PickleWriter::integers(const std::vector<int64_t>& values) {
  op(Op::Mark);
  for (const int64_t value : values) {
    integer(value);
  }
  op(Op::Tuple);
}

void PickleWriter::global(std::string_view module, std::string_view name) {
  op(Op::Global);
  bytes_.append(module).append("\n").append(name).append("\n");
}

std::string PickleWriter::finish() {
  op(Op::Stop);
  return std::move(bytes_);
}

}  // namespace rondo::detail
