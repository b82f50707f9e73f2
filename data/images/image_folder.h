#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "data/class_folders.h"
#include "data/dataset.h"
#include "data/images/masks.h"
#include "data/images/picture_cache.h"
#include "data/images/picture_changes.h"
#include "data/sample_content.h"

namespace rondo {

/// Pictures in folders named after their class, or with masks: JPEG and PNG files, decoded when
/// they are asked for. A sample has "image", float32 [channels, height, width],
/// (value in [0, 1] - mean) / std, and "label", int64 [], the number of the class; or "mask", int64
/// [height, width], that of each pixel. What chance decides follows from seed, epoch and number of
/// the sample.
class ImageFolder final : public Dataset, public SampleContent {
 public:
  struct Options {
    std::string root = {};                  ///< the folder of the classes' folders; must be given
    std::vector<std::string> classes = {};  ///< in the order of their numbers; all, sorted by name
    bool labelled =
        true;  ///< false: files in any folders, for predictions; samples have no "label"
    /// A CSV file in `root` with the columns "file", from `root` on, and "label": instead of
    /// folders.
    std::string labels_file = {};
    MaskOptions masks = {};  ///< of files in any folders, instead of labels
    TableSplit split = {};   ///< which pictures are used; by is "random", "stratified" or a fold
    int64_t height = 224;
    int64_t width = 224;
    int64_t channels = 3;  ///< 1: grey, 3: red, green, blue
    /// "center": the largest part of the picture that has the shape of the result, from its middle.
    /// "random": a part of random size, shape and place, as Szegedy et al. 2014 (arXiv:1409.4842)
    /// take it. "none": the whole picture, whose shape may change.
    std::string crop = "center";
    double min_area = 0.08;          ///< of a random part, as a share of the picture, in (0, 1]
    double flip = 0.0;               ///< chance that left and right are exchanged, in [0, 1]
    PictureChanges changes = {};     ///< of the part that was taken
    std::vector<double> mean = {};   ///< a number for each channel; 0 when empty
    std::vector<double> std = {};    ///< a number > 0 for each channel; 1 when empty
    uint64_t augment_seed = 0;       ///< of what chance decides
    PictureCacheOptions cache = {};  ///< of pictures as they are decoded
    /// Damaged files that are left out: each gives the next picture that is whole, of any class,
    /// instead. One more is an error. The metric `data/damaged` counts them.
    int64_t max_damaged = 0;
    std::optional<std::filesystem::path> data_dir = {};  ///< else the environment's RONDO_DATA
  };

  /// Lists the files; none is opened.
  /// \throws DataError  when the folder, a class, a picture or a mask is missing
  explicit ImageFolder(const Options& options);

  int64_t size() const override { return files_.size(); }

  /// Classes with their weights, and the shape of an image.
  DatasetFacts facts() const override;

  /// The names of the classes, and the values that masks have for them.
  StateDict fitted() const override { return masks_ ? masks_->fitted() : files_.fitted(); }

  void take_fitted(const StateDict& fitted) override;

  /// As in epoch 0.
  Sample get(int64_t index) const override;

  Batch get_epoch_batch(const std::vector<int64_t>& indices, int64_t epoch) const override;
  std::vector<double> numbers(const std::string& name) const override;

  /// The picture's path from `root` on.
  std::string sample_name(int64_t index) const override { return files_.name(index); }

  /// The bytes of the picture's file.
  std::string content_of(int64_t index) const override { return files_.content(index); }

  std::vector<std::pair<std::string, double>> counts() const override;

  const std::vector<std::string>& classes() const { return files_.classes; }

 private:
  bool has_masks() const { return options_.labelled && options_.masks.are_there(); }

  bool has_labels() const { return options_.labelled && !options_.masks.are_there(); }

  void require_masks() const;
  PictureView draw_view(const ImageSize& size, KeyedRandom& random) const;
  at::Tensor pixels_of(const Image& image, const PictureView& view, KeyedRandom& random) const;
  Sample sample(int64_t index, int64_t epoch) const;
  Sample read(int64_t file, int64_t index, int64_t epoch) const;
  void leave_out(int64_t file) const;

  Options options_;
  ClassFolders files_;
  std::optional<Masks> masks_;
  std::shared_ptr<PictureCache> cache_;  // null: there is none
  mutable std::mutex mutex_;             // guards what follows
  mutable std::set<int64_t> left_out_;   // damaged files that were met
};

}  // namespace rondo
