#include <fmt/format.h>
#include <zlib.h>

#include <cstdint>

#include "callbacks/builtin/internal/npz.h"
#include "core/error.h"

namespace rondo::detail {

namespace {

template <class Integer>
void append(std::string& bytes, Integer value) {
  for (size_t i = 0; i < sizeof(Integer); ++i) {
    bytes += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xff);
  }
}

/// Of a machine that keeps the low byte first.
const char* type_name(at::ScalarType type) {
  switch (type) {
    case at::kByte:
      return "|u1";
    case at::kChar:
      return "|i1";
    case at::kBool:
      return "|b1";
    case at::kShort:
      return "<i2";
    case at::kInt:
      return "<i4";
    case at::kLong:
      return "<i8";
    case at::kHalf:
      return "<f2";
    case at::kFloat:
      return "<f4";
    case at::kDouble:
      return "<f8";
    default:
      throw NotSupportedError(
          fmt::format("numpy has no type for tensors of {}", c10::toString(type)));
  }
}

std::string npy_of(const at::Tensor& tensor) {
  const bool is_narrow = tensor.scalar_type() == at::kBFloat16;
  const at::Tensor values =
      tensor.detach().to(at::kCPU).to(is_narrow ? at::kFloat : tensor.scalar_type()).contiguous();
  std::string shape;
  for (const int64_t size : values.sizes()) {
    shape += fmt::format("{},", size);
  }
  std::string head = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 type_name(values.scalar_type()),
                                 shape);
  constexpr size_t kPrefix = 10;
  head.append(63 - (kPrefix + head.size()) % 64, ' ');
  head += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  append(bytes, static_cast<uint16_t>(head.size()));
  bytes += head;
  return bytes.append(static_cast<const char*>(values.data_ptr()), values.nbytes());
}

/// What local and central headers have in common, from the version needed to the name's length.
std::string facts_of(const std::string& name, const std::string& bytes) {
  std::string facts;
  append(facts, uint16_t{20});
  append(facts, uint16_t{0x0800});      // names are UTF-8
  append(facts, uint16_t{0});           // stored
  append(facts, uint32_t{0x00210000});  // 1980-01-01
  append(facts,
         static_cast<uint32_t>(
             ::crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size())));
  append(facts, static_cast<uint32_t>(bytes.size()));
  append(facts, static_cast<uint32_t>(bytes.size()));
  append(facts, static_cast<uint16_t>(name.size()));
  append(facts, uint16_t{0});
  return facts;
}

}  // namespace

std::string npz_of(const NamedTensors& tensors) {
  if (tensors.size() >= 0xffff) {
    throw NotSupportedError("an .npz file holds fewer than 65,535 arrays: keep fewer tensors");
  }
  std::string archive;
  std::string directory;
  for (const NamedTensor& tensor : tensors) {
    const std::string name = tensor.first + ".npy";
    const std::string bytes = npy_of(tensor.second);
    if (archive.size() + bytes.size() > 0xf0000000U) {
      throw NotSupportedError("an .npz file holds at most 4 GB: keep fewer steps or tensors");
    }
    const std::string facts = facts_of(name, bytes);
    directory += std::string("PK\x01\x02\x14\x00", 6) + facts + std::string(10, '\0');
    append(directory, static_cast<uint32_t>(archive.size()));
    directory += name;
    archive += std::string("PK\x03\x04", 4) + facts + name + bytes;
  }
  const auto offset = static_cast<uint32_t>(archive.size());
  archive += directory + std::string("PK\x05\x06\0\0\0\0", 8);
  append(archive, static_cast<uint16_t>(tensors.size()));
  append(archive, static_cast<uint16_t>(tensors.size()));
  append(archive, static_cast<uint32_t>(directory.size()));
  append(archive, offset);
  append(archive, uint16_t{0});
  return archive;
}

}  // namespace rondo::detail
