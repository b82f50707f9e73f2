#include "support/tiny_run.h"

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "core/random.h"
#include "data/tensor_dataset.h"
#include "models/from_module.h"
#include "optim/sgd.h"
#include "trainer/trainer.h"

namespace rondo::test {

TrainerOptions tiny_options(const std::filesystem::path& model_dir) {
  TrainerOptions options;
  options.model_dir = model_dir;
  options.seed = 7;
  options.model = from_module(
      [] { return torch::nn::Sequential(torch::nn::Linear(4, 3)); }, "x", cross_entropy("label"));
  options.optimizer = use<Sgd>({0.1});
  options.backend.mode = "eager";
  options.backend.on_refusal = "error";  // where a test asks for traced steps, they are
  return options;
}

DataLoader tiny_loader(std::string label, int64_t size, int64_t batch_size, uint64_t seed) {
  LoaderOptions options;
  options.batch_size = batch_size;
  return tiny_loader(std::move(label), size, options, seed);
}

DataLoader tiny_loader(std::string label,
                       int64_t size,
                       const LoaderOptions& batches,
                       uint64_t seed) {
  KeyedRandom random(seed);
  std::vector<float> x;
  std::vector<int64_t> y;
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      x.push_back(static_cast<float>(random.normal()));
    }
    y.push_back(static_cast<int64_t>(random.below(3)));
  }
  const auto features = torch::tensor(x).reshape({size, 4});
  return DataLoader(
      std::move(label), from_tensors({{"x", features}, {"label", torch::tensor(y)}}), batches);
}

StateDict bits_of(Trainer& trainer) {
  StateDict state;
  trainer.call(hooks::on_save_checkpoint, state);
  StateDict copy;
  for (const StateDict::Item& item : state.items()) {
    if (item.first != "timestamp" && item.first != "metrics") {
      copy.set(item.first, item.second);
    }
  }
  StateDict counters = state.at("timestamp").as_dict();
  for (const char* clock : {"total_seconds", "epoch_seconds", "batch_seconds"}) {
    counters.erase(clock);
  }
  copy.set("timestamp", counters);
  return deep_copy(copy);
}

TextLog quiet_log(std::vector<std::string>* lines) {
  return TextLog::to([lines](LogLevel level, std::string_view text) {
    if (lines != nullptr && (level == LogLevel::Warning || level == LogLevel::Error)) {
      lines->emplace_back(text);
    }
  });
}

void MemoryLogger::log(const Metrics& values, int64_t update) {
  for (const Metrics::Item& item : values.items()) {
    options_.entries->push_back({update, item.first, values.number(item.first).value_or(0.0)});
  }
}

void MemoryLogger::flush() {
  if (options_.flushes != nullptr) {
    ++*options_.flushes;
  }
}

std::vector<std::pair<int64_t, double>> values_of(const std::vector<MemoryLogger::Entry>& entries,
                                                  const std::string& name) {
  std::vector<std::pair<int64_t, double>> found;
  for (const MemoryLogger::Entry& entry : entries) {
    if (entry.name == name) {
      found.emplace_back(entry.update, entry.value);
    }
  }
  return found;
}

}  // namespace rondo::test
