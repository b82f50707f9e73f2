#include "fuzz/readers.h"

#include <filesystem>
#include <fstream>

#include "checkpoint/checkpoint_file.h"
#include "checkpoint/safetensors_file.h"
#include "configs/toml_file.h"
#include "core/error.h"
#include "data/csv_table.h"
#include "data/images/decode.h"
#include "data/npy_file.h"
#include "data/tables/json_lines.h"
#include "support/temp_dir.h"

namespace rondo::test {

namespace {

/// The bytes as a file, for readers of paths. The next call replaces it.
std::filesystem::path file_of(std::string_view bytes, const char* name) {
  static const TempDir dir;
  std::ofstream stream(dir / name, std::ios::binary);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return dir / name;
}

template <class Read>
bool takes(const Read& read) {
  try {
    read();
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool checkpoint(std::string_view bytes) {
  return takes([&] { read_checkpoint(file_of(bytes, "file.pt")); });
}

bool safetensors(std::string_view bytes) {
  return takes([&] { read_safetensors(file_of(bytes, "file.safetensors")); });
}

bool npy(std::string_view bytes) {
  return takes([&] { read_npy(file_of(bytes, "file.npy")); });
}

bool npz(std::string_view bytes) {
  return takes([&] { read_npz(file_of(bytes, "file.npz")); });
}

bool json_lines(std::string_view bytes) {
  constexpr uint64_t kMost = 1 << 24;
  return takes([&] { read_json_lines("file", bytes, kMost); });
}

bool csv(std::string_view bytes) {
  return takes([&] {
    CsvTable::Options options;
    options.file = file_of(bytes, "file.csv").string();
    options.label_column = "";
    const CsvTable table(options);
  });
}

bool image(std::string_view bytes) {
  constexpr int64_t kMostPixels = 1 << 20;  // of a real picture; more takes long and shows nothing
  return takes([&] {
    const ImageSize size = image_size("file", bytes);
    if (size.height * size.width <= kMostPixels) {
      decode_image("file", bytes, 3);
    }
  });
}

bool toml(std::string_view bytes) {
  return takes([&] { parse_toml(bytes, "file.toml"); });
}

}  // namespace

const std::vector<Reader>& every_reader() {
  static const std::vector<Reader> readers = {{"checkpoint", &checkpoint},
                                              {"csv", &csv},
                                              {"image", &image},
                                              {"json_lines", &json_lines},
                                              {"npy", &npy},
                                              {"npz", &npz},
                                              {"safetensors", &safetensors},
                                              {"toml", &toml}};
  return readers;
}

}  // namespace rondo::test
