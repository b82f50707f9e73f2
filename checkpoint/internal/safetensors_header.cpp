#include "checkpoint/internal/safetensors_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "checkpoint/internal/malformed.h"
#include "core/json.h"
#include "core/json_reader.h"
#include "core/utf8.h"

namespace rondo::detail {

namespace {

struct Dtype {
  const char* name;
  c10::ScalarType type;
};

constexpr Dtype kDtypes[] = {{"F64", c10::ScalarType::Double},
                             {"F32", c10::ScalarType::Float},
                             {"F16", c10::ScalarType::Half},
                             {"BF16", c10::ScalarType::BFloat16},
                             {"I64", c10::ScalarType::Long},
                             {"I32", c10::ScalarType::Int},
                             {"I16", c10::ScalarType::Short},
                             {"I8", c10::ScalarType::Char},
                             {"U8", c10::ScalarType::Byte},
                             {"BOOL", c10::ScalarType::Bool}};

const char* name_of(c10::ScalarType type) {
  for (const Dtype& dtype : kDtypes) {
    if (dtype.type == type) {
      return dtype.name;
    }
  }
  return nullptr;
}

c10::ScalarType type_of(const std::string& name) {
  for (const Dtype& dtype : kDtypes) {
    if (name == dtype.name) {
      return dtype.type;
    }
  }
  throw Malformed("has a tensor of the unknown dtype " + in_quotes(name));
}

std::vector<int64_t> read_integers(JsonReader& json) {
  std::vector<int64_t> numbers;
  json.array([&] { numbers.push_back(json.unsigned_integer()); });
  return numbers;
}

SafetensorsEntry read_entry(JsonReader& json, std::string name) {
  SafetensorsEntry entry;
  entry.name = std::move(name);
  std::set<std::string> keys;
  json.object([&](const std::string& key) {
    keys.insert(key);
    if (key == "dtype") {
      entry.type = type_of(json.string());
    } else if (key == "shape") {
      entry.shape = read_integers(json);
    } else if (key == "data_offsets") {
      const std::vector<int64_t> offsets = read_integers(json);
      if (offsets.size() != 2) {
        throw Malformed("has data_offsets that are not two numbers");
      }
      entry.begin = static_cast<uint64_t>(offsets[0]);
      entry.end = static_cast<uint64_t>(offsets[1]);
    } else {
      throw Malformed("has the unknown key " + in_quotes(key));
    }
  });
  if (keys.size() != 3) {
    throw Malformed(in_quotes(entry.name) + " lacks dtype, shape or data_offsets");
  }
  return entry;
}

/// Bytes of an entry's shape. \throws Malformed  when they are more than any file has
uint64_t size_of(const SafetensorsEntry& entry) {
  uint64_t bytes = c10::elementSize(entry.type);
  for (const int64_t length : entry.shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(length), &bytes) || bytes > uint64_t{1}
                                                                                            << 62) {
      throw Malformed(in_quotes(entry.name) + " is larger than any file");
    }
  }
  return bytes;
}

void check_layout(std::vector<SafetensorsEntry>& entries, uint64_t data_size) {
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  uint64_t end = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != end || entry.end < entry.begin ||
        entry.end - entry.begin != size_of(entry)) {
      throw Malformed(fmt::format("{} lies at {} to {}, but its shape needs {} bytes from {} on",
                                  in_quotes(entry.name),
                                  entry.begin,
                                  entry.end,
                                  size_of(entry),
                                  end));
    }
    end = entry.end;
  }
  if (end != data_size) {
    throw Malformed(fmt::format("has tensors of {} bytes, but {} bytes of data", end, data_size));
  }
}

}  // namespace

std::string make_safetensors_header(const std::vector<SafetensorsEntry>& entries) {
  std::string json = "{\"__metadata__\":{\"format\":\"pt\"}";
  for (const SafetensorsEntry& entry : entries) {
    const char* dtype = name_of(entry.type);
    if (dtype == nullptr) {
      throw Malformed(fmt::format(
          "{} is {}, which safetensors does not have", entry.name, c10::toString(entry.type)));
    }
    json += fmt::format(",{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                        json_string(entry.name),
                        dtype,
                        fmt::join(entry.shape, ","),
                        entry.begin,
                        entry.end);
  }
  json += "}";
  json.append((8 - json.size() % 8) % 8, ' ');
  return json;
}

std::vector<SafetensorsEntry> read_safetensors_header(std::string_view text, uint64_t data_size) {
  std::vector<SafetensorsEntry> entries;
  std::set<std::string> names;
  JsonReader json(text);
  json.object([&](const std::string& name) {
    if (!is_utf8(name)) {
      throw Malformed("has the name " + in_quotes(name) + ", which is not UTF-8");
    }
    if (!names.insert(name).second) {
      throw Malformed("names " + in_quotes(name) + " twice");
    }
    if (name == "__metadata__") {
      json.object([&](const std::string&) { json.string(); });
    } else {
      entries.push_back(read_entry(json, name));
    }
  });
  json.end();
  check_layout(entries, data_size);
  return entries;
}

}  // namespace rondo::detail
