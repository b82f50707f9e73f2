#include "fuzz/readers.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "checkpoint/checkpoint_file.h"
#include "checkpoint/safetensors_file.h"
#include "configs/toml_file.h"
#include "core/error.h"
#include "data/arrays/npy_file.h"
#include "data/audio/sound_file.h"
#include "data/images/cifar_binary.h"
#include "data/images/decode.h"
#include "data/images/idx_images.h"
#include "data/optional_reader.h"
#include "data/records/lmdb_records.h"
#include "data/records/tar_file.h"
#include "data/tables/csv_table.h"
#include "data/tables/json_lines.h"
#include "data/tables/sqlite_rows.h"
#include "data/text/byte_pairs.h"
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
      takes([&] { decode_mask("file", bytes); });
      decode_image("file", bytes, 3);
    }
  });
}

/// The bytes are those of the pictures; of each of three samples the label is 0.
bool idx(std::string_view bytes) {
  const std::string labels("\0\0\x08\x01\0\0\0\x03\0\0\0", 11);
  return takes([&] {
    IdxImages::Options options;
    options.images = file_of(bytes, "images").string();
    options.labels = file_of(labels, "labels").string();
    const IdxImages data(options);
    data.get(data.size() - 1);
  });
}

bool cifar(std::string_view bytes) {
  return takes([&] {
    CifarBinary::Options options;
    options.files = {file_of(bytes, "file.bin").string()};
    const CifarBinary data(options);
    data.get(data.size() - 1);
  });
}

bool sqlite(std::string_view bytes) {
  constexpr uint64_t kMost = 1 << 20;
  const bool is_built = not_built_note("SQLITE").empty();
  return !is_built ||
         takes([&] { read_sqlite(file_of(bytes, "file.sqlite"), "select * from rows", kMost); });
}

/// vocab.json, a byte of 0, merges.txt.
bool byte_pairs(std::string_view bytes) {
  const size_t end = std::min(bytes.find('\0'), bytes.size());
  const bool is_built = not_built_note("PCRE2").empty();
  return !is_built || takes([&] {
    file_of(bytes.substr(std::min(end + 1, bytes.size())), "merges.txt");
    const BytePairs pairs(file_of(bytes.substr(0, end), "vocab.json").parent_path());
    pairs.decode(pairs.encode("the other theatre, twice the size"));
  });
}

bool toml(std::string_view bytes) {
  return takes([&] { parse_toml(bytes, "file.toml"); });
}

bool lmdb(std::string_view bytes) {
  return takes([&] {
    LmdbRecords::Options options;
    options.file = file_of(bytes, "file.mdb").string();
    options.tensors = {{"x", "npy"}, {"label", "cls"}};
    const LmdbRecords data(options);
    for (int64_t i = 0; i < data.size(); ++i) {
      data.get(i);
    }
  });
}

bool sound(std::string_view bytes) {
  constexpr int64_t kFrames = 1 << 20;
  const bool is_built = not_built_note("SNDFILE").empty();
  return !is_built || takes([&] { read_sound(file_of(bytes, "file.wav"), 0, kFrames); });
}

bool tar(std::string_view bytes) {
  return takes([&] {
    const TarFile archive(file_of(bytes, "file.tar"));
    for (auto member = archive.member_at(0); member; member = archive.member_at(member->next)) {
      archive.content(*member);
    }
  });
}

}  // namespace

const std::vector<Reader>& every_reader() {
  static const std::vector<Reader> readers = {{"byte_pairs", &byte_pairs},
                                              {"checkpoint", &checkpoint},
                                              {"cifar", &cifar},
                                              {"csv", &csv},
                                              {"idx", &idx},
                                              {"image", &image},
                                              {"json_lines", &json_lines},
                                              {"lmdb", &lmdb},
                                              {"npy", &npy},
                                              {"npz", &npz},
                                              {"safetensors", &safetensors},
                                              {"sound", &sound},
                                              {"sqlite", &sqlite},
                                              {"tar", &tar},
                                              {"toml", &toml}};
  return readers;
}

}  // namespace rondo::test
