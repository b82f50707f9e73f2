#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "core/random.h"
#include "data/dataset.h"
#include "data/records/record_form.h"

namespace rondo {

/// Samples in tar archives, as WebDataset lays them out: the files of a sample follow each other
/// and have one name but for the endings, 0001.jpg and 0001.cls. The archives are read from their
/// beginning to their end, one after the other. A resumed run goes on at the same sample.
class TarShards final : public IterableDataset {
 public:
  struct Options {
    std::string file = {};                   ///< name or glob of the archives, not compressed
    std::vector<RecordTensor> tensors = {};  ///< of a sample; at least one
    int64_t height = 224;                    ///< of pictures
    int64_t width = 224;
    int64_t channels = 3;  ///< of pictures: 1 or 3
    /// Samples among which the next one is chosen by chance, >= 1; the archives then come in
    /// another order in each epoch, too. 1: all in their order.
    int64_t shuffle_buffer = 1;
    uint64_t seed = 0;   ///< of what is chosen
    int64_t ahead = 16;  ///< samples that are decoded ahead, each by a thread of its own, >= 0
    std::optional<std::filesystem::path> data_dir = {};  ///< else the environment's RONDO_DATA
    std::string folder = {};                             ///< of data_dir, looked into as well
  };

  /// Lists the archives; none is opened.
  /// \throws DataError  when there is none
  explicit TarShards(const Options& options);

  /// \throws UsageError  for options that are out of range or do not go together
  static void check(const Options& options);

  void start(int64_t epoch) override;

  /// \throws DataError  naming archive and offset of what is damaged
  std::optional<Sample> next() override;

  bool has_state() const override { return true; }

  StateDict save_state() const override;
  void load_state(const StateDict& state) override;

 private:
  /// Where a sample stands.
  struct Place {
    int64_t shard = 0;   // number in `shards_`
    int64_t offset = 0;  // of the header of its first file
  };

  /// Which sample comes next: a pure function of seed and epoch, as far as it was asked.
  struct Plan {
    int64_t epoch = 0;
    int64_t shard = 0;   // in the order of the epoch
    int64_t offset = 0;  // of the next header in it
    int64_t drawn = 0;   // samples that were chosen
    std::vector<Place> buffer = {};
  };

  std::optional<Place> choose(Plan& plan) const;
  std::optional<Place> read_place(Plan& plan) const;
  Sample decode(const Place& place) const;

  Options options_;
  std::vector<std::filesystem::path> shards_;
  Plan given_;    // up to what `next` gave
  Plan planned_;  // up to what is decoded ahead
  std::deque<std::future<Sample>> ahead_;
};

}  // namespace rondo
