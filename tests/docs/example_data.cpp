#include "docs/example_data.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <torch/csrc/jit/api/module.h>

#include <string>
#include <utility>
#include <vector>

#include "checkpoint/safetensors_file.h"
#include "core/file_system.h"
#include "data/data_files.h"
#include "data/tar_files.h"
#include "data/text_files.h"
#include "loggers/media_bytes.h"

namespace rondo::test {

namespace {

namespace fs = std::filesystem;

constexpr int kRows = 32;
constexpr int kSide = 28;

/// Bytes that look like data: `count` of them below `bound`.
std::string scattered(size_t count, unsigned bound) {
  std::string bytes(count, '\0');
  for (size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<char>(i * 2654435761U / 65536 % bound);
  }
  return bytes;
}

std::string picture(int number) {
  Picture made{kSide, kSide, 1, std::vector<uint8_t>(kSide * kSide)};
  for (size_t i = 0; i < made.pixels.size(); ++i) {
    made.pixels[i] = static_cast<uint8_t>(i * static_cast<size_t>(number + 1) % 251);
  }
  return png_of(made);
}

void write_pictures(const fs::path& folder) {
  std::vector<std::pair<std::string, std::string>> files;
  for (int i = 0; i < kRows; ++i) {
    write_file(folder / "pictures" / (i % 2 == 0 ? "cats" : "dogs") / fmt::format("{}.png", i),
               picture(i));
    files.emplace_back(fmt::format("{:04}.png", i), picture(i));
    files.emplace_back(fmt::format("{:04}.cls", i), std::to_string(i % 10));
  }
  write_file(folder / "shards/0.tar", tar_bytes(files));
}

/// The format of RIFF: 16 bits, one channel, 8000 frames a second.
std::string wav(const std::string& samples) {
  const auto number = [](uint32_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) {
      text += static_cast<char>(value >> (8 * i) & 0xffU);
    }
    return text;
  };
  const auto size = static_cast<uint32_t>(samples.size());
  return "RIFF" + number(36 + size, 4) + "WAVEfmt " + number(16, 4) + number(1, 2) + number(1, 2) +
         number(8000, 4) + number(16000, 4) + number(2, 2) + number(16, 2) + "data" +
         number(size, 4) + samples;
}

void write_sounds(const fs::path& folder) {
  for (int i = 0; i < kRows; ++i) {
    write_file(folder / "sounds" / (i % 2 == 0 ? "low" : "high") / fmt::format("{}.wav", i),
               wav(scattered(static_cast<size_t>(4000 + i), 100)));
  }
}

void write_tables(const fs::path& folder) {
  std::string flowers = "length,width,species\n";
  std::string measured = "load,wind\n";
  for (int i = 0; i < 3 * kRows; ++i) {
    flowers += fmt::format("{}.5,{},{}\n", i % 7, i % 5, i % 3 == 0 ? "rose" : "lily");
    measured += fmt::format("{}.25,{}\n", i % 11, i % 4);
  }
  write_file(folder / "flowers.csv", flowers);
  write_file(folder / "measured.csv", measured);
}

void write_arrays(const fs::path& folder) {
  const at::Tensor pixels = at::linspace(0, 1, kRows * kSide * kSide, at::kFloat);
  std::string head = fmt::format(
      "{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}, {}), }}", kRows, kSide, kSide);
  head.resize(117, ' ');
  write_file(folder / "images.npy",
             std::string("\x93NUMPY\x01\x00\x76\x00", 10) + head + "\n" +
                 std::string(static_cast<const char*>(pixels.data_ptr()), pixels.nbytes()));
  const at::Tensor labels = at::arange(kRows, at::kLong).remainder(10);
  write_safetensors(*real_file_system(),
                    folder / "labels.safetensors",
                    {{"y", labels}, {"shares", at::one_hot(labels, 10).to(at::kFloat)}});
}

void write_texts(const fs::path& folder) {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += fmt::format("The {} sheep graze on hill {}.\n", i, i * 7 % 13);
  }
  write_file(folder / "shakespeare/input.txt", text);
  std::string tokens;
  for (const char c : scattered(2000, 60)) {
    tokens += {c, '\0'};
  }
  write_file(folder / "tokens.bin", tokens);
  fs::create_directory(folder / "words");
  write_byte_pairs(folder / "words", {"t h", "th e"});
}

void write_script(const fs::path& folder) {
  torch::jit::Module root("Root");
  root.register_attribute("training", c10::BoolType::get(), true);
  root.register_parameter(
      "weight", (at::randn({kSide * kSide, 10}) * 0.1).requires_grad_(), /*is_buffer=*/false);
  root.define("def forward(self, x):\n    return torch.mm(torch.flatten(x, 1), self.weight)\n");
  root.save((folder / "model.ts").string());
}

void write_byte_files(const fs::path& folder) {
  const auto count = static_cast<uint32_t>(kRows);
  write_file(folder / "mnist/train-images-idx3-ubyte",
             idx_bytes({count, kSide, kSide}, scattered(kRows * kSide * kSide, 256)));
  write_file(folder / "mnist/train-labels-idx1-ubyte", idx_bytes({count}, scattered(kRows, 10)));
  for (const char number : {'1', '2', '3', '4', '5'}) {
    std::string records;
    for (int i = 0; i < 8; ++i) {
      records += static_cast<char>(i) + scattered(3 * 32 * 32, 256);
    }
    write_file(folder / "cifar-10-batches-bin" / (std::string("data_batch_") + number + ".bin"),
               records);
  }
}

}  // namespace

void write_example_data(const fs::path& folder) {
  write_pictures(folder);
  write_sounds(folder);
  write_tables(folder);
  write_arrays(folder);
  write_texts(folder);
  write_script(folder);
  write_byte_files(folder);
}

}  // namespace rondo::test
