#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/options.h"
#include "core/tensor_map.h"

namespace rondo {

/// One tensor of a sample that is several small files of one name: which of them it is read from.
/// The last part of the ending says what the file holds:
///
///     jpg, jpeg, png, webp   a picture: float32 [channels, height, width] in [0, 1]
///     npy                    the array
///     npz/NAME               an array of an archive
///     cls, idx               an integer in text: int64 []
///     txt                    numbers in text, between blanks or commas: float32, [] of one
struct RecordTensor {
  std::string tensor = {};
  std::string ending = {};  ///< behind the first dot of the file's name: "jpg", "left.npy"
};

/// What the files of a sample become.
struct RecordForm {
  std::vector<RecordTensor> tensors = {};  ///< at least one
  int64_t height = 224;                    ///< of pictures
  int64_t width = 224;
  int64_t channels = 3;  ///< 1: grey, 3: red, green, blue
};

/// A file of a sample.
struct RecordFile {
  std::string ending = {};
  std::string_view bytes = {};
};

/// \param owner  for messages: "TarShards"
/// \throws UsageError  for no tensor, an ending that is none of the above, a size below 1
void check_form(const std::string& owner, const RecordForm& form);

/// \param name  of the sample, for messages: "a.tar: offset 512: sample \"0001\""
/// \throws DataError  naming the sample: a file that is not there, with those that are; one that is
///                    damaged
Sample read_record(const std::string& name,
                   const std::vector<RecordFile>& files,
                   const RecordForm& form);

/// "0001.left.npy" as "0001" and "left.npy"; folders belong to the first.
std::pair<std::string, std::string> split_record_name(const std::string& name);

/// How a config writes `tensors`: { image = "jpg", label = "cls" }.
struct RecordTensorsOption {
  static std::string name();
  static std::optional<std::vector<RecordTensor>> read(const ConfigValue& value, FaultSink& faults);
  static ConfigValue write(const std::vector<RecordTensor>& tensors);
};

}  // namespace rondo
