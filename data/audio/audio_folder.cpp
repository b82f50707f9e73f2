#include "data/audio/audio_folder.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/random.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/audio/sound_file.h"
#include "data/audio/spectrogram.h"
#include "data/internal/rows.h"
#include "data/internal/samples.h"
#include "data/optional_reader.h"
#include "data/register.h"

namespace rondo {

namespace {

using Options = AudioFolder::Options;

constexpr int64_t kMostFrames = int64_t{1} << 28;  // of a sample

bool is_power_of_two(int64_t number) {
  return number >= 2 && (number & (number - 1)) == 0;
}

SpectrogramShape shape_of(const Options& options) {
  SpectrogramShape shape;
  shape.window = options.window;
  shape.hop = options.hop;
  shape.bands = options.spectrogram == "log_mel" ? options.bands : 0;
  return shape;
}

/// The first frame that is taken of a file.
int64_t first_frame(const Options& options, int64_t in_file, KeyedRandom& random) {
  const int64_t most = std::max<int64_t>(in_file - options.frames, 0);
  if (options.cut == "random") {
    return static_cast<int64_t>(random.below(static_cast<uint64_t>(most) + 1));
  }
  return options.cut == "center" ? most / 2 : 0;
}

/// Channel `channel` of a sound, as long as a sample; the mean of all where a sample has one.
std::vector<float> channel_of(const Sound& sound, int64_t channel, const Options& options) {
  const auto in_file = static_cast<size_t>(sound.info.channels);
  std::vector<float> values(static_cast<size_t>(options.frames));
  for (size_t frame = 0; frame < sound.values.size() / in_file; ++frame) {
    const float* const at = sound.values.data() + frame * in_file;
    float sum = 0.0F;
    for (size_t c = 0; options.channels == 1 && c < in_file; ++c) {
      sum += at[c] / static_cast<float>(in_file);
    }
    values[frame] = options.channels == 1 ? sum : at[channel];
  }
  return values;
}

void take_logarithm(std::vector<float>& values) {
  for (float& value : values) {
    value = std::log(value + 1e-6F);
  }
}

}  // namespace

void AudioFolder::check(const Options& options) {
  require_reader("SNDFILE", "AudioFolder");
  detail::require(!options.root.empty(), "AudioFolder: root", "given", "\"\"");
  detail::require(options.frames >= 1 && options.frames <= kMostFrames,
                  "AudioFolder: frames",
                  "in [1, 2^28]",
                  options.frames);
  detail::require(
      options.sample_rate >= 0, "AudioFolder: sample_rate", ">= 0", options.sample_rate);
  detail::require(options.channels >= 1, "AudioFolder: channels", ">= 1", options.channels);
  detail::require(options.cut == "start" || options.cut == "center" || options.cut == "random",
                  "AudioFolder: cut",
                  R"("start", "center" or "random")",
                  options.cut);
  detail::require(options.spectrogram == "none" || options.spectrogram == "power" ||
                      options.spectrogram == "log_mel",
                  "AudioFolder: spectrogram",
                  R"("none", "power" or "log_mel")",
                  options.spectrogram);
  detail::require(is_power_of_two(options.window) && options.window <= kMostFrames,
                  "AudioFolder: window",
                  "a power of two",
                  options.window);
  detail::require(options.hop >= 1, "AudioFolder: hop", ">= 1", options.hop);
  detail::require(options.bands >= 1 && options.bands <= options.window,
                  "AudioFolder: bands",
                  "in [1, window]",
                  options.bands);
  if (options.spectrogram == "log_mel" && options.sample_rate == 0) {
    throw UsageError("AudioFolder: spectrogram = \"log_mel\" needs sample_rate");
  }
}

AudioFolder::AudioFolder(const Options& options) : options_(options) {
  check(options_);
  files_ = ClassFolders::list({"AudioFolder",
                               options_.root,
                               options_.classes,
                               {".wav", ".flac"},
                               options_.data_dir,
                               options_.labelled});
}

DatasetFacts AudioFolder::facts() const {
  DatasetFacts facts = files_.facts();
  if (options_.spectrogram != "none") {
    const SpectrogramShape shape = shape_of(options_);
    facts.image_shape = {options_.channels, shape.rows(), shape.columns(options_.frames)};
  }
  return facts;
}

std::vector<double> AudioFolder::numbers(const std::string& name) const {
  return name == "label" && options_.labelled ? files_.labels() : Dataset::numbers(name);
}

Sample AudioFolder::get(int64_t index) const {
  return sample(index, 0);
}

Batch AudioFolder::get_epoch_batch(const std::vector<int64_t>& indices, int64_t epoch) const {
  std::vector<Sample> samples;
  samples.reserve(indices.size());
  for (const int64_t index : indices) {
    samples.push_back(sample(index, epoch));
  }
  return detail::stack_samples(samples, indices);
}

Sample AudioFolder::sample(int64_t index, int64_t epoch) const {
  detail::check_index(index, size());
  const ClassFolders::File& file = files_[index];
  const SoundInfo info = sound_info(file.path);
  if (options_.sample_rate > 0 && info.sample_rate != options_.sample_rate) {
    throw DataError(fmt::format("{}: it has {} frames a second, sample_rate is {}; convert it",
                                file.path.string(),
                                info.sample_rate,
                                options_.sample_rate));
  }
  if (options_.channels > 1 && info.channels != options_.channels) {
    throw DataError(fmt::format("{}: it has {} channels, channels is {}",
                                file.path.string(),
                                info.channels,
                                options_.channels));
  }
  KeyedRandom random(
      options_.augment_seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index));
  const int64_t first = first_frame(options_, info.frames, random);
  const Sound sound = read_sound(file.path, first, options_.frames);
  const bool is_wave = options_.spectrogram == "none";
  const SpectrogramShape shape = shape_of(options_);
  const at::Tensor audio =
      is_wave ? at::empty({options_.channels, options_.frames}, at::kFloat)
              : at::empty({options_.channels, shape.rows(), shape.columns(options_.frames)},
                          at::kFloat);
  auto* to = audio.data_ptr<float>();
  for (int64_t channel = 0; channel < options_.channels; ++channel) {
    std::vector<float> values = channel_of(sound, channel, options_);
    if (!is_wave) {
      values = spectrogram(values, shape, info.sample_rate);
    }
    if (options_.spectrogram == "log_mel") {
      take_logarithm(values);
    }
    to = std::copy(values.begin(), values.end(), to);
  }
  Sample made{{"audio", audio}};
  if (options_.labelled) {
    made.set("label", at::full({}, file.label, at::kLong));
  }
  return made;
}

void register_audio_folder(Registry<DataSource>& registry) {
  registry
      .add<AudioFolder>("AudioFolder",
                        "WAV and FLAC files in folders named after their class, as waves or "
                        "spectrograms." +
                            not_built_note("SNDFILE"))
      .key("root", &Options::root, "folder of the classes' folders, in data_dir where not absolute")
      .required()
      .key("classes",
           &Options::classes,
           "folders, in the order of their numbers; none: all, sorted by name")
      .key("labelled",
           &Options::labelled,
           "false: files without a class, in root and its folders, for predictions")
      .key("frames",
           &Options::frames,
           between(1, kMostFrames),
           "of a sample: longer sounds are cut, shorter ones end in zeros")
      .key("sample_rate",
           &Options::sample_rate,
           at_least(0),
           "frames a second of every file; another one is an error; 0: any")
      .key("channels", &Options::channels, at_least(1), "1: the mean of all channels of a file")
      .key("cut",
           &Options::cut,
           one_of({"start", "center", "random"}),
           "the part that is taken of a longer sound")
      .key("spectrogram",
           &Options::spectrogram,
           one_of({"none", "power", "log_mel"}),
           "the power of frequencies, or the logarithm of 1e-6 + power in bands of the mel scale")
      .key("window", &Options::window, at_least(2), "frames of a window, a power of two")
      .key("hop", &Options::hop, at_least(1), "frames from one window to the next")
      .key("bands", &Options::bands, at_least(1), "of a log_mel spectrogram")
      .key("augment_seed", &Options::augment_seed, "seed of random parts")
      .key("data_dir", &Options::data_dir, "directory that holds root; else RONDO_DATA");
}

}  // namespace rondo
