#include "data/streams/sample_ring.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/random.h"
#include "core/registry.h"
#include "core/require.h"
#include "data/register.h"

namespace rondo {

namespace {

bool is_one_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

void check(const SampleRing::Options& options) {
  constexpr int64_t kMost = int64_t{1} << 40;
  detail::require(options.capacity >= 1 && options.capacity <= kMost,
                  "SampleRing: capacity",
                  ">= 1",
                  options.capacity);
  detail::require(options.min_samples >= 1 && options.min_samples <= options.capacity,
                  "SampleRing: min_samples",
                  fmt::format("in [1, {}], the capacity", options.capacity),
                  options.min_samples);
  detail::require(is_one_of(options.when_full, {"overwrite", "drop", "block"}),
                  "SampleRing: when_full",
                  "\"overwrite\", \"drop\" or \"block\"",
                  options.when_full);
  detail::require(is_one_of(options.draw, {"uniform", "in_order", "priority"}),
                  "SampleRing: draw",
                  "\"uniform\", \"in_order\" or \"priority\"",
                  options.draw);
  detail::require(options.timeout > 0, "SampleRing: timeout", "> 0", options.timeout);
  detail::require(
      options.priority_power >= 0, "SampleRing: priority_power", ">= 0", options.priority_power);
  detail::require(options.epoch_samples.value_or(1) >= 1,
                  "SampleRing: epoch_samples",
                  ">= 1",
                  options.epoch_samples.value_or(1));
  if (options.when_full == "block" && options.draw != "in_order") {
    throw UsageError(
        "SampleRing: when_full = \"block\" needs draw = \"in_order\": only that takes samples out "
        "and makes room");
  }
}

std::string shape_text(const at::Tensor& tensor, int64_t first) {
  return fmt::format("{}[{}]",
                     c10::toString(tensor.scalar_type()),
                     fmt::join(tensor.sizes().slice(static_cast<size_t>(first)), ", "));
}

/// The sample as plain memory, which takes the time that is spent outside of the lock.
TensorMap plain(const TensorMap& sample) {
  TensorMap tensors;
  for (const auto& [name, tensor] : sample.items()) {
    if (!tensor.defined()) {
      throw UsageError(fmt::format("SampleRing: tensor \"{}\" of a push is undefined", name));
    }
    tensors.set(name, tensor.detach().resolve_conj().resolve_neg().cpu().contiguous());
  }
  return tensors;
}

char* row_of(const at::Tensor& slots, size_t slot) {
  const size_t bytes = slots.nbytes() / static_cast<size_t>(slots.size(0));
  return static_cast<char*>(slots.data_ptr()) + slot * bytes;
}

double checked_priority(double priority) {
  detail::require(std::isfinite(priority) && priority > 0, "SampleRing: priority", "> 0", priority);
  return priority;
}

/// \throws CheckpointError  when one is not of `count` samples
TensorMap rows_in(const StateDict& samples, int64_t count) {
  TensorMap rows;
  for (const StateDict::Item& item : samples.items()) {
    const at::Tensor tensor = item.second.as_tensor().cpu().contiguous();
    if (tensor.dim() == 0 || tensor.size(0) != count) {
      throw CheckpointError(
          fmt::format("the checkpoint's SampleRing has {} samples, but another number of \"{}\"",
                      count,
                      item.first));
    }
    rows.set(item.first, tensor);
  }
  return rows;
}

at::Tensor chances_in(const StateDict& state, int64_t count) {
  const at::Tensor chances = state.at("chances").as_tensor().to(at::kDouble).contiguous();
  if (chances.dim() != 1 || chances.size(0) != count) {
    throw CheckpointError("the checkpoint's SampleRing does not have one priority for each sample");
  }
  return chances;
}

}  // namespace

SampleRing::SampleRing(const Options& options)
    : options_((check(options), options)),
      priorities_(options.draw == "priority" ? options.capacity : 1) {}

std::string SampleRing::mismatch(const TensorMap& sample) const {
  if (sample.items().size() != slots_.items().size()) {
    return fmt::format(
        "it has {} tensors, earlier ones {}", sample.items().size(), slots_.items().size());
  }
  for (const auto& [name, tensor] : sample.items()) {
    const at::Tensor* const slots = slots_.find(name);
    if (slots == nullptr) {
      return fmt::format("earlier ones have no tensor \"{}\"", name);
    }
    if (tensor.scalar_type() != slots->scalar_type() || tensor.sizes() != slots->sizes().slice(1)) {
      return fmt::format(
          "\"{}\" is {}, in earlier ones {}", name, shape_text(tensor, 0), shape_text(*slots, 1));
    }
  }
  return "";
}

/// Memory for all samples; pages that no sample was written to take none.
void SampleRing::allocate(const TensorMap& sample) {
  if (sample.empty()) {
    throw UsageError("SampleRing: a push without tensors");
  }
  TensorMap slots;
  for (const auto& [name, tensor] : sample.items()) {
    std::vector<int64_t> shape = tensor.sizes().vec();
    shape.insert(shape.begin(), options_.capacity);
    slots.set(name, at::empty(shape, tensor.scalar_type()));
  }
  slots_ = std::move(slots);
}

SampleRing::Push SampleRing::push(const TensorMap& sample,
                                  std::optional<double> priority,
                                  std::string* why) {
  const TensorMap tensors = plain(sample);
  const double given = priority ? checked_priority(*priority) : 0.0;
  std::unique_lock lock(mutex_);
  if (slots_.empty()) {
    allocate(tensors);
  } else if (std::string wrong = mismatch(tensors); !wrong.empty()) {
    if (why != nullptr) {
      *why = std::move(wrong);
    }
    return Push::Mismatch;
  }
  if (options_.when_full == "block") {
    room_.wait(lock, [this] { return present() < options_.capacity || is_closed_; });
  }
  if (is_closed_) {
    return Push::Closed;
  }
  ++counts_.pushed;
  const bool is_full = present() == options_.capacity;
  if (is_full && options_.when_full == "drop") {
    ++counts_.dropped;
    return Push::Dropped;
  }
  if (is_full) {
    ++first_;
    ++counts_.overwritten;
  }
  const size_t slot = slot_of(end_++);
  for (const auto& [name, tensor] : tensors.items()) {
    if (tensor.nbytes() > 0) {
      std::memcpy(row_of(slots_[name], slot), tensor.data_ptr(), tensor.nbytes());
    }
  }
  if (options_.draw == "priority") {
    const double chance = priority ? std::pow(given, options_.priority_power) : priorities_.most();
    priorities_.set(static_cast<int64_t>(slot), chance);
  }
  lock.unlock();
  filled_.notify_one();
  return is_full ? Push::Overwrote : Push::Stored;
}

bool SampleRing::can_draw() const {
  return is_closed_ || present() >= (has_begun_ ? 1 : options_.min_samples);
}

std::string SampleRing::counts_text() const {
  return fmt::format("{} are there; {} were pushed, {} of them dropped, {} overwritten, {} drawn",
                     present(),
                     counts_.pushed,
                     counts_.dropped,
                     counts_.overwritten,
                     counts_.drawn);
}

SampleRing::Drawn SampleRing::draw_one() {
  Drawn drawn;
  KeyedRandom random(options_.seed, static_cast<uint64_t>(counts_.drawn), 0x72696e67);
  if (options_.draw == "in_order") {
    drawn.number = first_;
  } else if (options_.draw == "uniform") {
    drawn.number = first_ + static_cast<int64_t>(random.below(static_cast<uint64_t>(present())));
    drawn.chance = 1.0 / static_cast<double>(present());
  } else {
    const int64_t slot = priorities_.find(random.uniform());
    const auto oldest = static_cast<int64_t>(slot_of(first_));
    const int64_t behind = slot - oldest;
    drawn.number = first_ + (behind < 0 ? behind + options_.capacity : behind);
    drawn.chance = priorities_.at(slot) / priorities_.sum();
  }
  const size_t slot = slot_of(drawn.number);
  for (const auto& [name, slots] : slots_.items()) {
    at::Tensor tensor = at::empty(slots.sizes().slice(1), slots.scalar_type());
    if (tensor.nbytes() > 0) {
      std::memcpy(tensor.data_ptr(), row_of(slots, slot), tensor.nbytes());
    }
    drawn.sample.set(name, tensor);
  }
  ++counts_.drawn;
  if (options_.draw == "in_order") {
    ++first_;
    room_.notify_one();
  }
  has_begun_ = true;
  return drawn;
}

std::optional<SampleRing::Drawn> SampleRing::draw() {
  std::unique_lock lock(mutex_);
  const std::chrono::duration<double> timeout(options_.timeout);
  if (!filled_.wait_for(lock, timeout, [this] { return can_draw(); })) {
    throw DataError(
        fmt::format("SampleRing: waited {} s for {} samples, but {}; push more, or lower "
                    "min_samples or raise timeout",
                    options_.timeout,
                    has_begun_ ? 1 : options_.min_samples,
                    counts_text()));
  }
  const bool is_over = is_closed_ && (present() == 0 || options_.draw != "in_order");
  return is_over ? std::nullopt : std::optional<Drawn>(draw_one());
}

std::vector<SampleRing::Drawn> SampleRing::draw_now(int64_t count) {
  const std::lock_guard lock(mutex_);
  detail::require(count >= 0, "SampleRing: count", ">= 0", count);
  const int64_t needed =
      std::max(options_.min_samples, options_.draw == "in_order" ? count : int64_t{1});
  if (present() < needed) {
    throw DataError(
        fmt::format("SampleRing: {} samples are needed, but {}", needed, counts_text()));
  }
  std::vector<Drawn> drawn;
  for (int64_t i = 0; i < count; ++i) {
    drawn.push_back(draw_one());
  }
  return drawn;
}

void SampleRing::set_priority(int64_t number, double priority) {
  const double chance = std::pow(checked_priority(priority), options_.priority_power);
  const std::lock_guard lock(mutex_);
  if (options_.draw != "priority") {
    throw UsageError("SampleRing: priorities need draw = \"priority\"");
  }
  if (number >= first_ && number < end_) {
    priorities_.set(static_cast<int64_t>(slot_of(number)), chance);
  }
}

void SampleRing::close() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  room_.notify_all();
  filled_.notify_all();
}

SampleRing::Counts SampleRing::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts.present = present();
  return counts;
}

StateDict SampleRing::save_state() const {
  const std::lock_guard lock(mutex_);
  double bytes = 0;
  for (const auto& [name, slots] : slots_.items()) {
    bytes += static_cast<double>(slots.nbytes()) / static_cast<double>(options_.capacity) *
             static_cast<double>(present());
  }
  if (bytes > static_cast<double>(options_.max_state_bytes)) {
    throw DataError(
        fmt::format("SampleRing: its {} samples have {:.0f} bytes, a checkpoint may hold {}; raise "
                    "max_state_bytes or lower capacity",
                    present(),
                    bytes,
                    options_.max_state_bytes));
  }
  StateDict samples;
  for (const auto& [name, slots] : slots_.items()) {
    std::vector<int64_t> shape = slots.sizes().vec();
    shape[0] = present();
    at::Tensor rows = at::empty(shape, slots.scalar_type());
    const size_t row = slots.nbytes() / static_cast<size_t>(options_.capacity);
    for (int64_t i = 0; i < present() && row > 0; ++i) {
      std::memcpy(static_cast<char*>(rows.data_ptr()) + static_cast<size_t>(i) * row,
                  row_of(slots, slot_of(first_ + i)),
                  row);
    }
    samples.set(name, rows);
  }
  StateDict state{{"samples", std::move(samples)},
                  {"first", first_},
                  {"end", end_},
                  {"has_begun", has_begun_},
                  {"pushed", counts_.pushed},
                  {"dropped", counts_.dropped},
                  {"overwritten", counts_.overwritten},
                  {"drawn", counts_.drawn}};
  if (options_.draw == "priority") {
    at::Tensor chances = at::empty({present()}, at::kDouble);
    for (int64_t i = 0; i < present(); ++i) {
      chances.data_ptr<double>()[i] = priorities_.at(static_cast<int64_t>(slot_of(first_ + i)));
    }
    state.set("chances", chances);
    state.set("most", priorities_.most());
  }
  return state;
}

void SampleRing::load_state(const StateDict& state) {
  const std::lock_guard lock(mutex_);
  const int64_t first = state.at("first").as_int();
  const int64_t end = state.at("end").as_int();
  if (first < 0 || end < first || end - first > options_.capacity) {
    throw CheckpointError(fmt::format(
        "the checkpoint's SampleRing has the samples from {} to {}, the capacity is {} now",
        first,
        end,
        options_.capacity));
  }
  const int64_t count = end - first;
  const TensorMap rows = rows_in(state.at("samples").as_dict(), count);
  const bool has_priorities = options_.draw == "priority";
  const at::Tensor chances = has_priorities ? chances_in(state, count) : at::Tensor();
  slots_ = TensorMap();
  first_ = first;
  end_ = end;
  if (!rows.empty()) {
    TensorMap one;
    for (const auto& [name, tensor] : rows.items()) {
      one.set(name, at::empty(tensor.sizes().slice(1), tensor.scalar_type()));
    }
    allocate(one);
  }
  for (const auto& [name, tensor] : rows.items()) {
    const size_t row = count == 0 ? 0 : tensor.nbytes() / static_cast<size_t>(count);
    for (int64_t i = 0; i < count && row > 0; ++i) {
      std::memcpy(row_of(slots_[name], slot_of(first + i)),
                  static_cast<const char*>(tensor.data_ptr()) + static_cast<size_t>(i) * row,
                  row);
    }
  }
  if (has_priorities) {
    priorities_ = PriorityTree(options_.capacity);
    for (int64_t i = 0; i < count; ++i) {
      priorities_.set(static_cast<int64_t>(slot_of(first + i)), chances.data_ptr<double>()[i]);
    }
    priorities_.raise_most(state.at("most").as_double());
  }
  has_begun_ = state.at("has_begun").as_bool();
  counts_ = {state.at("pushed").as_int(),
             state.at("dropped").as_int(),
             state.at("overwritten").as_int(),
             state.at("drawn").as_int(),
             0};
}

std::optional<Sample> RingDataset::next() {
  if (left_ && *left_ == 0) {
    return std::nullopt;
  }
  std::optional<SampleRing::Drawn> drawn = ring_->draw();
  if (!drawn) {
    return std::nullopt;
  }
  if (left_) {
    --*left_;
  }
  if (ring_->options().draw == "priority") {
    drawn->sample.set("ring_number", at::full({}, drawn->number, at::kLong));
    drawn->sample.set("ring_chance", at::full({}, drawn->chance, at::kDouble));
  }
  return std::move(drawn->sample);
}

std::vector<std::pair<std::string, double>> RingDataset::counts() const {
  const SampleRing::Counts counts = ring_->counts();
  return {{"present", static_cast<double>(counts.present)},
          {"pushed", static_cast<double>(counts.pushed)},
          {"dropped", static_cast<double>(counts.dropped)},
          {"overwritten", static_cast<double>(counts.overwritten)}};
}

StateDict RingDataset::save_state() const {
  StateDict state = ring_->save_state();
  if (left_) {
    state.set("left_of_epoch", *left_);
  }
  return state;
}

void RingDataset::load_state(const StateDict& state) {
  ring_->load_state(state);
  const StateValue* const left = state.find("left_of_epoch");
  left_ = left != nullptr ? std::optional<int64_t>(left->as_int()) : ring_->options().epoch_samples;
}

Factory<DataSource> from_ring(std::shared_ptr<SampleRing> ring) {
  auto options = std::make_shared<const SampleRing::Options>(ring->options());
  return Factory<DataSource>("SampleRing", typeid(RingDataset), options, [ring] {
    return std::make_unique<RingDataset>(ring);
  });
}

void register_sample_ring(Registry<DataSource>& registry) {
  using Options = RingDataset::Options;
  registry
      .add<RingDataset>("SampleRing",
                        "The newest samples that a program pushes while it trains; see "
                        "rondo_train.h.")
      .key("capacity", &Options::capacity, at_least(1), "samples that it holds")
      .required()
      .key("min_samples",
           &Options::min_samples,
           at_least(1),
           "samples that must be there before the first is drawn")
      .key("when_full",
           &Options::when_full,
           one_of({"overwrite", "drop", "block"}),
           "what happens to a sample that is pushed into a full ring")
      .key("draw",
           &Options::draw,
           one_of({"uniform", "in_order", "priority"}),
           "how samples are drawn; in_order gives each once")
      .key("timeout", &Options::timeout, greater_than(0), "seconds that a draw waits for samples")
      .key("seed", &Options::seed, "of what is drawn")
      .key("priority_power",
           &Options::priority_power,
           at_least(0),
           "a sample's chance goes with its priority to this power")
      .key("epoch_samples",
           &Options::epoch_samples,
           at_least(1),
           "samples of an epoch; without it the first epoch never ends")
      .key("max_state_bytes",
           &Options::max_state_bytes,
           at_least(0),
           "bytes of samples that a checkpoint may hold");
}

}  // namespace rondo
