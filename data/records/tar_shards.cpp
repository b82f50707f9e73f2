#include "data/records/tar_shards.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/data_dir.h"
#include "data/records/tar_file.h"
#include "data/register.h"

namespace rondo {

namespace {

constexpr int64_t kMostFiles = 64;  // of a sample

RecordForm form_of(const TarShards::Options& options) {
  return {options.tensors, options.height, options.width, options.channels};
}

/// The number of the archive that comes at `position` in an epoch.
int64_t shard_at(const TarShards::Options& options,
                 int64_t shards,
                 int64_t epoch,
                 int64_t position) {
  return options.shuffle_buffer == 1
             ? position
             : permutation(shards, options.seed, epoch)[static_cast<size_t>(position)];
}

/// A number of a checkpoint.
int64_t integer(const StateDict& state, const char* name, int64_t least) {
  const int64_t value = state.at(name).as_int();
  if (value < least) {
    throw CheckpointError(fmt::format("TarShards: {} is {} in the checkpoint", name, value));
  }
  return value;
}

}  // namespace

void TarShards::check(const Options& options) {
  detail::require(!options.file.empty(), "TarShards: file", "given", "\"\"");
  check_form("TarShards", form_of(options));
  detail::require(options.shuffle_buffer >= 1 && options.shuffle_buffer <= int64_t{1} << 24,
                  "TarShards: shuffle_buffer",
                  "in [1, 2^24]",
                  options.shuffle_buffer);
  detail::require(options.ahead >= 0 && options.ahead <= 1024,
                  "TarShards: ahead",
                  "in [0, 1024]",
                  options.ahead);
}

TarShards::TarShards(const Options& options) : options_(options) {
  check(options_);
  shards_ = find_data_files(options_.data_dir, {"TarShards", {options_.file}, options_.folder, ""});
}

void TarShards::start(int64_t epoch) {
  ahead_.clear();
  given_ = {};
  given_.epoch = epoch;
  planned_ = given_;
}

/// Where the next sample in the order of the archives stands; nothing at the end of the epoch.
std::optional<TarShards::Place> TarShards::read_place(Plan& plan) const {
  const auto shards = static_cast<int64_t>(shards_.size());
  while (plan.shard < shards) {
    const int64_t shard = shard_at(options_, shards, plan.epoch, plan.shard);
    const TarFile archive(shards_[static_cast<size_t>(shard)]);
    auto member = archive.member_at(plan.offset);
    if (!member) {
      ++plan.shard;
      plan.offset = 0;
      continue;
    }
    const Place place{shard, plan.offset};
    const std::string name = split_record_name(member->name).first;
    for (int64_t files = 1; member && split_record_name(member->name).first == name; ++files) {
      if (files > kMostFiles) {
        throw DataError(fmt::format("{}: offset {}: sample \"{}\" has more than {} files",
                                    archive.path().string(),
                                    place.offset,
                                    name,
                                    kMostFiles));
      }
      plan.offset = member->next;
      member = archive.member_at(plan.offset);
    }
    return place;
  }
  return std::nullopt;
}

/// The next sample: of those in the buffer, which is filled first, one that chance decides.
std::optional<TarShards::Place> TarShards::choose(Plan& plan) const {
  while (static_cast<int64_t>(plan.buffer.size()) < options_.shuffle_buffer) {
    const auto place = read_place(plan);
    if (!place) {
      break;
    }
    plan.buffer.push_back(*place);
  }
  if (plan.buffer.empty()) {
    return std::nullopt;
  }
  KeyedRandom random(
      options_.seed, static_cast<uint64_t>(plan.epoch), static_cast<uint64_t>(plan.drawn++));
  const auto number = static_cast<size_t>(random.below(plan.buffer.size()));
  const Place chosen = plan.buffer[number];
  plan.buffer[number] = plan.buffer.back();
  plan.buffer.pop_back();
  return chosen;
}

Sample TarShards::decode(const Place& place) const {
  const TarFile archive(shards_[static_cast<size_t>(place.shard)]);
  std::vector<std::string> endings;
  std::vector<std::string> contents;
  std::string name;
  auto member = archive.member_at(place.offset);
  while (member && contents.size() < static_cast<size_t>(kMostFiles)) {
    auto [base, ending] = split_record_name(member->name);
    if (!contents.empty() && base != name) {
      break;
    }
    name = std::move(base);
    endings.push_back(std::move(ending));
    contents.push_back(archive.content(*member));
    member = archive.member_at(member->next);
  }
  std::vector<RecordFile> files;
  for (size_t i = 0; i < contents.size(); ++i) {
    files.push_back({endings[i], contents[i]});
  }
  return read_record(fmt::format("{}: offset {}: {}", archive.path().string(), place.offset, name),
                     files,
                     form_of(options_));
}

std::optional<Sample> TarShards::next() {
  while (static_cast<int64_t>(ahead_.size()) <= options_.ahead) {
    const auto place = choose(planned_);
    if (!place) {
      break;
    }
    const auto policy = options_.ahead == 0 ? std::launch::deferred : std::launch::async;
    ahead_.push_back(std::async(policy, [this, place] { return decode(*place); }));
  }
  if (ahead_.empty()) {
    return std::nullopt;
  }
  std::future<Sample> first = std::move(ahead_.front());
  ahead_.pop_front();
  choose(given_);
  return first.get();
}

StateDict TarShards::save_state() const {
  const auto size = static_cast<int64_t>(given_.buffer.size());
  at::Tensor buffer = at::empty({size, 2}, at::kLong);
  auto* to = buffer.data_ptr<int64_t>();
  for (const Place& place : given_.buffer) {
    *to++ = place.shard;
    *to++ = place.offset;
  }
  return {{"epoch", given_.epoch},
          {"shards", static_cast<int64_t>(shards_.size())},
          {"shard", given_.shard},
          {"offset", given_.offset},
          {"drawn", given_.drawn},
          {"buffer", std::move(buffer)}};
}

void TarShards::load_state(const StateDict& state) {
  const auto shards = static_cast<int64_t>(shards_.size());
  if (integer(state, "shards", 0) != shards) {
    throw CheckpointError(fmt::format(
        "TarShards: the run saw {} archives, there are {}", state.at("shards").as_int(), shards));
  }
  Plan plan;
  plan.epoch = integer(state, "epoch", 0);
  plan.shard = integer(state, "shard", 0);
  plan.offset = integer(state, "offset", 0);
  plan.drawn = integer(state, "drawn", 0);
  const at::Tensor& buffer = state.at("buffer").as_tensor();
  if (buffer.scalar_type() != at::kLong || buffer.dim() != 2 || buffer.size(1) != 2) {
    throw CheckpointError("TarShards: the checkpoint's buffer is no table of places");
  }
  const at::Tensor places = buffer.contiguous();
  for (int64_t i = 0; i < places.size(0); ++i) {
    const int64_t* const place = places.data_ptr<int64_t>() + 2 * i;
    if (place[0] < 0 || place[0] >= shards || place[1] < 0) {
      throw CheckpointError("TarShards: the checkpoint names a place that is not there");
    }
    plan.buffer.push_back({place[0], place[1]});
  }
  ahead_.clear();
  given_ = plan;
  planned_ = std::move(plan);
}

void register_tar_shards(Registry<DataSource>& registry) {
  using Options = TarShards::Options;
  registry
      .add<TarShards>("TarShards",
                      "Samples in tar archives, as WebDataset has them, streamed and shuffled in a "
                      "buffer.")
      .key("file", &Options::file, "name or glob of the archives, not compressed")
      .required()
      .key_of("tensors", &Options::tensors, RecordTensorsOption{}, "which file each tensor is")
      .required()
      .key("height", &Options::height, at_least(1), "rows of pixels of a picture")
      .key("width", &Options::width, at_least(1), "pixels of a row")
      .key("channels", &Options::channels, "1: grey; 3: red, green and blue")
      .key("shuffle_buffer",
           &Options::shuffle_buffer,
           at_least(1),
           "samples among which chance decides; 1: all in their order")
      .key("seed", &Options::seed, "of what is chosen")
      .key("ahead", &Options::ahead, at_least(0), "samples that threads decode ahead")
      .key("data_dir", &Options::data_dir, "directory of the archives; else RONDO_DATA")
      .key("folder", &Options::folder, "folder of data_dir that is searched too");
}

}  // namespace rondo
