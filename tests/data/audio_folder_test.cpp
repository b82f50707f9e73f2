#include "data/audio/audio_folder.h"

#include <doctest/doctest.h>
#include <sndfile.h>
#include <torch/types.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/state_dict.h"
#include "data/audio/sound_file.h"
#include "data/data_files.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

constexpr int kRate = 8000;

/// Values that rise from frame to frame, the second channel's the negative of the first.
void write_sound(const std::filesystem::path& path, int format, int frames, int channels = 1) {
  SF_INFO info = {};
  info.samplerate = kRate;
  info.channels = channels;
  info.format = format;
  SNDFILE* const file = sf_open(path.c_str(), SFM_WRITE, &info);
  REQUIRE(file != nullptr);
  std::vector<short> values;
  for (int i = 0; i < frames; ++i) {
    for (int c = 0; c < channels; ++c) {
      values.push_back(static_cast<short>((c == 0 ? 1 : -1) * (i + 1) * 64));
    }
  }
  sf_writef_short(file, values.data(), frames);
  sf_close(file);
}

AudioFolder::Options folder_in(const TempDir& dir) {
  std::filesystem::create_directories(dir / "sounds/a");
  std::filesystem::create_directories(dir / "sounds/b");
  write_sound(dir / "sounds/a/1.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 20);
  write_sound(dir / "sounds/b/1.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 8, 2);
  AudioFolder::Options options;
  options.root = (dir / "sounds").string();
  options.frames = 12;
  return options;
}

}  // namespace

TEST_SUITE_BEGIN("data/audio_folder");

TEST_CASE("classes have the numbers of training, and one that training lacks is named") {
  const TempDir dir;
  const AudioFolder train(folder_in(dir));
  const TempDir other;
  AudioFolder::Options options = folder_in(other);
  std::filesystem::remove_all(other / "sounds/a");
  AudioFolder val(options);
  val.take_fitted(train.fitted());
  CHECK(val.numbers("label") == std::vector<double>{1});
  CHECK(val.facts().class_names == train.facts().class_names);
  std::filesystem::rename(other / "sounds/b", other / "sounds/c");
  AudioFolder unknown(options);
  CHECK(contains(message_of([&] { unknown.take_fitted(train.fitted()); }), "class \"c\""));
}

TEST_CASE("WAV and FLAC files become waves of one length, with the class of their folder") {
  const TempDir dir;
  const AudioFolder data(folder_in(dir));
  CHECK(data.size() == 2);
  CHECK(data.facts().class_names == std::vector<std::string>{"a", "b"});
  CHECK(data.sample_name(1) == "b/1.flac");
  const Sample longer = data.get(0);
  CHECK(longer["audio"].sizes() == at::IntArrayRef({1, 12}));
  CHECK(longer["audio"][0][11].item<float>() == 12.0F * 64 / 32768);
  const Sample shorter = data.get(1);
  CHECK(shorter["label"].item<int64_t>() == 1);
  CHECK(shorter["audio"].abs().max().item<float>() == 0.0F);  // the mean of two opposite channels
}

TEST_CASE("the part of a longer sound is the middle, or one that epoch and number decide") {
  const TempDir dir;
  AudioFolder::Options options = folder_in(dir);
  options.cut = "center";
  CHECK(AudioFolder(options).get(0)["audio"][0][0].item<float>() == 5.0F * 64 / 32768);
  options.cut = "random";
  const AudioFolder data(options);
  bool differs = false;
  for (int64_t epoch = 0; epoch < 8; ++epoch) {
    const at::Tensor once = data.get_epoch_batch({0}, epoch)["audio"];
    CHECK(equal_bytes(once, data.get_epoch_batch({0}, epoch)["audio"]));
    differs = differs || !equal_bytes(once, data.get_epoch_batch({0}, 0)["audio"]);
  }
  CHECK(differs);
}

TEST_CASE("a spectrogram has channels, bands and windows, and is the shape of an image") {
  const TempDir dir;
  AudioFolder::Options options = folder_in(dir);
  options.spectrogram = "log_mel";
  options.sample_rate = kRate;
  options.window = 8;
  options.hop = 2;
  options.bands = 3;
  const AudioFolder data(options);
  CHECK(data.get(0)["audio"].sizes() == at::IntArrayRef({1, 3, 3}));
  CHECK(data.facts().image_shape == std::vector<int64_t>{1, 3, 3});
}

TEST_CASE("another rate or number of channels, and damage, are told with the file") {
  const TempDir dir;
  AudioFolder::Options options = folder_in(dir);
  options.sample_rate = 16000;
  CHECK(contains(message_of([&] { AudioFolder(options).get(0); }), "1.wav: it has 8000 frames"));
  options.sample_rate = 0;
  options.channels = 2;
  CHECK(contains(message_of([&] { AudioFolder(options).get(0); }), "1 channels"));
  CHECK(AudioFolder(options).get(1)["audio"][1][0].item<float>() == -64.0F / 32768);
  write_file(dir / "sounds/a/1.wav", "RIFF, so it says");
  CHECK(contains(message_of([&] { AudioFolder(options).get(0); }), "1.wav"));
  options.window = 48;
  CHECK_THROWS_AS(AudioFolder{options}, UsageError);
}

TEST_CASE("a sound that is cut anywhere, or has any byte changed, is read or refused") {
  const TempDir dir;
  for (const int format : {SF_FORMAT_WAV, SF_FORMAT_FLAC}) {
    const std::filesystem::path path = dir / "sound";
    write_sound(path, format | SF_FORMAT_PCM_16, 40);
    std::ifstream in(path, std::ios::binary);
    const std::string good((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    const auto read_or_refuse = [&](const std::string& bytes) {
      write_file(dir / "changed", bytes);
      try {
        read_sound(dir / "changed", 0, 1000);
      } catch (const DataError&) {
      }
    };
    for (size_t at = 0; at < good.size(); at += 3) {
      read_or_refuse(good.substr(0, at));
      std::string bytes = good;
      bytes[at] = static_cast<char>(~bytes[at]);
      read_or_refuse(bytes);
    }
  }
}

TEST_SUITE_END();
