#include "data/records/record_form.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/arrays/npy_file.h"
#include "data/images/decode.h"
#include "data/images/image_box.h"
#include "data/images/resample.h"

namespace rondo {

namespace {

enum class Form { Picture, Npy, Npz, Integer, Numbers };

struct NamedForm {
  const char* name;
  Form form;
};

constexpr NamedForm kForms[] = {{"jpg", Form::Picture},
                                {"jpeg", Form::Picture},
                                {"png", Form::Picture},
                                {"webp", Form::Picture},
                                {"npy", Form::Npy},
                                {"npz", Form::Npz},
                                {"cls", Form::Integer},
                                {"idx", Form::Integer},
                                {"txt", Form::Numbers}};

/// "x.npz/a" as the file's ending "x.npz" and the entry "a".
std::pair<std::string, std::string> split_entry(const std::string& ending) {
  const size_t slash = ending.find('/');
  return slash == std::string::npos ? std::pair(ending, std::string())
                                    : std::pair(ending.substr(0, slash), ending.substr(slash + 1));
}

std::optional<Form> form_of(const std::string& ending) {
  const std::string last = ending.substr(ending.rfind('.') + 1);
  for (const NamedForm& known : kForms) {
    if (last == known.name) {
      return known.form;
    }
  }
  return std::nullopt;
}

at::Tensor picture(const std::string& name, std::string_view bytes, const RecordForm& form) {
  const ImageSize size = image_size(name, bytes);
  const ImageBox box = center_box(size.height, size.width, form.height, form.width);
  const Image image = decode_image(name, bytes, form.channels);
  const at::Tensor pixels = at::empty({form.channels, form.height, form.width}, at::kFloat);
  resample(image, box, form.height, form.width, pixels.data_ptr<float>());
  return pixels;
}

[[noreturn]] void fail(const std::string& name, const std::string& what) {
  throw DataError(name + ": " + what);
}

bool is_space(char c) {
  return c == ' ' || c == ',' || c == '\t' || c == '\n' || c == '\r';
}

/// The numbers of a text, between blanks or commas.
template <class T>
std::vector<T> numbers_in(const std::string& name, std::string_view text) {
  std::vector<T> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    at = std::find_if_not(at, end, is_space);
    if (at == end) {
      return numbers;
    }
    T value{};
    const auto read = std::from_chars(at, end, value);
    if (read.ec != std::errc() || (read.ptr != end && !is_space(*read.ptr))) {
      fail(name, fmt::format("offset {}: expected a number", at - text.data()));
    }
    numbers.push_back(value);
    at = read.ptr;
  }
}

at::Tensor entry_of(const std::string& name, const TensorMap& arrays, const std::string& entry) {
  if (arrays.items().size() == 1 && entry.empty()) {
    return arrays.items().front().second;
  }
  if (const at::Tensor* found = arrays.find(entry)) {
    return *found;
  }
  std::vector<std::string> names;
  for (const NamedTensor& array : arrays.items()) {
    names.push_back(array.first);
  }
  fail(name,
       fmt::format("there is no array \"{}\"{}; there are [{}]",
                   entry,
                   suggestion(entry, names),
                   fmt::join(names, ", ")));
}

at::Tensor read_file(const std::string& name,
                     std::string_view bytes,
                     const std::string& ending,
                     const std::string& entry,
                     const RecordForm& form) {
  switch (*form_of(ending)) {
    case Form::Picture:
      return picture(name, bytes, form);
    case Form::Npy:
      return entry_of(name, read_npy_bytes(name, bytes), entry);
    case Form::Npz:
      return entry_of(name, read_npz_bytes(name, bytes), entry);
    case Form::Integer: {
      const std::vector<int64_t> numbers = numbers_in<int64_t>(name, bytes);
      if (numbers.size() != 1) {
        fail(name, fmt::format("expected one integer, got {}", numbers.size()));
      }
      return at::full({}, numbers.front(), at::kLong);
    }
    case Form::Numbers: {
      const std::vector<float> numbers = numbers_in<float>(name, bytes);
      const at::Tensor row = at::tensor(numbers);
      return numbers.size() == 1 ? row[0] : row;
    }
  }
  return {};
}

}  // namespace

void check_form(const std::string& owner, const RecordForm& form) {
  detail::require(!form.tensors.empty(), owner + ": tensors", "at least one", "none");
  for (const RecordTensor& tensor : form.tensors) {
    const auto [ending, entry] = split_entry(tensor.ending);
    const bool takes_entry = form_of(ending) == Form::Npz || form_of(ending) == Form::Npy;
    detail::require(form_of(ending).has_value() && (entry.empty() || takes_entry),
                    fmt::format("{}: tensors: {}", owner, tensor.tensor),
                    "an ending jpg, jpeg, png, webp, npy, npz, npz/NAME, cls, idx or txt",
                    '"' + tensor.ending + '"');
  }
  detail::require(form.height >= 1, owner + ": height", ">= 1", form.height);
  detail::require(form.width >= 1, owner + ": width", ">= 1", form.width);
  detail::require(
      form.channels == 1 || form.channels == 3, owner + ": channels", "1 or 3", form.channels);
}

Sample read_record(const std::string& name,
                   const std::vector<RecordFile>& files,
                   const RecordForm& form) {
  Sample sample;
  for (const RecordTensor& tensor : form.tensors) {
    const auto [ending, entry] = split_entry(tensor.ending);
    const auto found =
        std::find_if(files.begin(), files.end(), [&wanted = ending](const auto& file) {
          return file.ending == wanted;
        });
    if (found == files.end()) {
      std::vector<std::string> endings;
      for (const RecordFile& file : files) {
        endings.push_back(file.ending);
      }
      fail(name,
           fmt::format("it has no file \"{}\"{}; it has [{}]",
                       ending,
                       suggestion(ending, endings),
                       fmt::join(endings, ", ")));
    }
    sample.set(tensor.tensor, read_file(name + "." + ending, found->bytes, ending, entry, form));
  }
  return sample;
}

std::pair<std::string, std::string> split_record_name(const std::string& name) {
  const size_t slash = name.rfind('/');
  const size_t dot = name.find('.', slash == std::string::npos ? 0 : slash + 1);
  return dot == std::string::npos ? std::pair(name, std::string())
                                  : std::pair(name.substr(0, dot), name.substr(dot + 1));
}

std::string RecordTensorsOption::name() {
  return "a table with the ending of each tensor's file: { image = \"jpg\", label = \"cls\" }";
}

std::optional<std::vector<RecordTensor>> RecordTensorsOption::read(const ConfigValue& value,
                                                                   FaultSink& faults) {
  const auto* table = value.get_if<ConfigTable>();
  if (table == nullptr) {
    return detail::mismatch(value, name(), faults);
  }
  std::vector<RecordTensor> tensors;
  for (const ConfigEntry& entry : table->entries()) {
    FaultSink inside = faults.inside(entry.key);
    const auto* ending = entry.value.get_if<std::string>();
    if (ending == nullptr) {
      return detail::mismatch(entry.value, "a string, the ending of a file", inside);
    }
    tensors.push_back({entry.key, *ending});
  }
  return tensors;
}

ConfigValue RecordTensorsOption::write(const std::vector<RecordTensor>& tensors) {
  ConfigTable table;
  for (const RecordTensor& tensor : tensors) {
    table.set(tensor.tensor, ConfigValue(tensor.ending));
  }
  return ConfigValue(std::move(table));
}

}  // namespace rondo
