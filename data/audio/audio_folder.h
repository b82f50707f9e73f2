#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "data/class_folders.h"
#include "data/dataset.h"
#include "data/sample_content.h"

namespace rondo {

/// Sounds in folders named after their class: WAV and FLAC files, decoded when they are asked for.
/// A sample has "audio" and "label", int64 [], the number of the class. "audio" is float32
/// [channels, frames] in [-1, 1], or the spectrogram of that, [channels, bands, windows]. What
/// chance decides follows from seed, epoch and number of the sample.
class AudioFolder final : public Dataset, public SampleContent {
 public:
  struct Options {
    std::string root = {};                  ///< the folder of the classes' folders; must be given
    std::vector<std::string> classes = {};  ///< in the order of their numbers; all, sorted by name
    bool labelled =
        true;  ///< false: files in any folders, for predictions; samples have no "label"
    int64_t frames = 16000;     ///< of a sample: longer sounds are cut, shorter ones end in zeros
    int64_t sample_rate = 0;    ///< frames a second; another one is an error; 0: any
    int64_t channels = 1;       ///< 1: the mean of all channels of a file
    std::string cut = "start";  ///< the part of a longer sound: "start", "center" or "random"
    /// "none", "power", or "log_mel": the logarithm of 1e-6 + power in bands of the mel scale
    std::string spectrogram = "none";
    int64_t window = 512;                                ///< frames of a window, a power of two
    int64_t hop = 256;                                   ///< frames from one window to the next
    int64_t bands = 64;                                  ///< of a log_mel spectrogram
    uint64_t augment_seed = 0;                           ///< of what chance decides
    std::optional<std::filesystem::path> data_dir = {};  ///< else the environment's RONDO_DATA
  };

  /// Lists the files; none is opened.
  /// \throws DataError  when the folder, a class or a sound is missing
  explicit AudioFolder(const Options& options);

  /// \throws UsageError  for options that are out of range, or without the library
  static void check(const Options& options);

  int64_t size() const override { return files_.size(); }

  /// Classes with their weights, and the shape of a spectrogram as that of an image.
  DatasetFacts facts() const override;

  /// The names of the classes.
  StateDict fitted() const override { return files_.fitted(); }

  void take_fitted(const StateDict& fitted) override { files_.take_fitted(fitted); }

  /// As in epoch 0.
  Sample get(int64_t index) const override;

  Batch get_epoch_batch(const std::vector<int64_t>& indices, int64_t epoch) const override;
  std::vector<double> numbers(const std::string& name) const override;

  /// The sound's path from `root` on.
  std::string sample_name(int64_t index) const override { return files_.name(index); }

  /// The bytes of the sound's file.
  std::string content_of(int64_t index) const override { return files_.content(index); }

 private:
  Sample sample(int64_t index, int64_t epoch) const;

  Options options_;
  ClassFolders files_;
};

}  // namespace rondo
