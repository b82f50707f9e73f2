#include "contenders.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "callbacks/core/precision_callback.h"
#include "callbacks/core/reproducibility_callback.h"
#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "core/file_system.h"
#include "data/tensor_dataset.h"
#include "loggers/loggers.h"
#include "loops/fit_run.h"
#include "optim/clip.h"
#include "optim/optimizers.h"
#include "optim/schedulers.h"
#include "tracing/graphs/device_graphs.h"
#include "tracing/make_backend.h"
#include "tracing/timeline.h"
#include "trainer/trainer.h"

namespace bench {

using namespace rondo;

namespace {

constexpr uint64_t kSeed = 1;
constexpr int64_t kBatchesOfAPass = 64;
constexpr int64_t kLogEvery = 10;
constexpr int64_t kSaveEvery = 1000;
constexpr int64_t kScheduleLength = 100000;

/// That batch, in several places in memory that steps go round: data that a loader makes anew does
/// not lie in the caches from the step before.
class RepeatedBatch {
 public:
  RepeatedBatch(const Workload& w, int64_t copies, c10::Device device) {
    const Batch batch = make_batch(w);
    for (int64_t i = 0; i < copies; ++i) {
      Batch& copy = copies_.emplace_back();
      for (const auto& [name, tensor] : batch.items()) {
        copy.set(name, tensor.to(device, /*non_blocking=*/false, /*copy=*/true));
      }
    }
  }

  const Batch& next() {
    next_ = (next_ + 1) % copies_.size();
    return copies_[next_];
  }

 private:
  std::vector<Batch> copies_;
  size_t next_ = 0;
};

double cosine(double lr, int64_t update) {
  const double share = static_cast<double>(update) / static_cast<double>(kScheduleLength);
  return lr * 0.5 * (1.0 + std::cos(M_PI * share));
}

/// A directory for what is saved, gone afterwards.
class Scratch {
 public:
  explicit Scratch(const std::string& of)
      : path_(std::filesystem::temp_directory_path() /
              fmt::format("step_bench_{}_{}", of, ::getpid())) {
    std::filesystem::create_directories(path_);
  }

  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  ~Scratch() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

bool is_save_due(const Workload& w, int64_t update) {
  return w.is_saved && (update + 1) % kSaveEvery == 0;
}

std::shared_ptr<bench::Network> seeded_network(const Workload& w, c10::Device device) {
  torch::manual_seed(kSeed);
  std::shared_ptr<bench::Network> network = w.make_network();
  network->to(device);
  return network;
}

at::Tensor loss_of(bench::Network& network, const Batch& batch, const Place& place) {
  const OperatorPrecision as_others;
  const PrecisionScope scope(place.autocast, place.device.type(), as_others);
  return network.loss(batch);
}

/// What a C++ user writes today.
class HandWritten final : public Contender {
 public:
  HandWritten(const Workload& w, const Settings& settings)
      : w_(w), place_(place_of(settings)), batches_(w, settings.copies, place_.device) {
    net_ = seeded_network(w, place_.device);
    const std::vector<at::Tensor> parameters = net_->parameters();
    if (w.rule == Rule::SgdMomentum) {
      optimizer_ = std::make_unique<torch::optim::SGD>(
          parameters, torch::optim::SGDOptions(w.lr).momentum(0.9));
    } else if (w.rule == Rule::Adam) {
      optimizer_ =
          std::make_unique<torch::optim::Adam>(parameters, torch::optim::AdamOptions(w.lr));
    } else {
      optimizer_ =
          std::make_unique<torch::optim::AdamW>(parameters, torch::optim::AdamWOptions(w.lr));
    }
  }

  void train(int64_t updates) override {
    for (int64_t i = 0; i < updates; ++i, ++update_) {
      optimizer_->zero_grad();
      for (int64_t m = 0; m < w_.micro_batches; ++m) {
        loss_ = loss_of(*net_, batches_.next(), place_);
        (w_.micro_batches > 1 ? loss_ / static_cast<double>(w_.micro_batches) : loss_).backward();
      }
      if (w_.clip_norm > 0.0) {
        torch::nn::utils::clip_grad_norm_(net_->parameters(), w_.clip_norm);
      }
      if (w_.is_scheduled) {
        optimizer_->param_groups()[0].options().set_lr(cosine(w_.lr, update_));
      }
      optimizer_->step();
      if (w_.is_scheduled && update_ % kLogEvery == 0) {
        logged_ = loss_.item<double>();
      }
      if (is_save_due(w_, update_)) {
        torch::save(net_, (scratch_.path() / "model.pt").string());
        torch::save(*optimizer_, (scratch_.path() / "optimizer.pt").string());
      }
    }
  }

  double loss() const override { return loss_.item<double>(); }

 private:
  Workload w_;
  Place place_;
  RepeatedBatch batches_;
  std::shared_ptr<bench::Network> net_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  at::Tensor loss_;
  Scratch scratch_{"by_hand"};
  int64_t update_ = 0;
  double logged_ = 0.0;
};

Factory<Optimizer> optimizer_of(const Workload& w) {
  if (w.rule == Rule::SgdMomentum) {
    Sgd::Options sgd;
    sgd.lr = w.lr;
    sgd.momentum = 0.9;
    return use<Sgd>(sgd);
  }
  return w.rule == Rule::Adam ? use<Adam>({w.lr}) : use<AdamW>({w.lr});
}

/// Calls one of LibTorch's fused updates, which only some versions have.
void call_by_name(const char* name, torch::jit::Stack arguments) {
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(&arguments);
}

/// What a C++ user writes who records the step as a graph of the device: a fused update, and no
/// number that changes from step to step. No schedule, no accumulation.
class HandMadeGraph final : public Contender {
 public:
  HandMadeGraph(const Workload& w, const Settings& settings)
      : w_(w), place_(place_of(settings)), batches_(w, settings.copies, place_.device) {
    graphs_ = make_device_graphs(place_.device.type());
    if (graphs_ == nullptr || w.micro_batches > 1 || w.clip_norm > 0.0) {
      throw NotSupportedError("graph: not for " + w.name + " on " + settings.device);
    }
    net_ = seeded_network(w, place_.device);
    for (const at::Tensor& parameter : net_->parameters()) {
      parameters_.push_back(parameter);
      first_moments_.push_back(at::zeros_like(parameter));
      second_moments_.push_back(at::zeros_like(parameter));
      counts_.push_back(at::zeros({}, parameter.options().dtype(at::kFloat)));
    }
    for (const auto& [name, tensor] : batches_.next().items()) {
      input_.set(name, tensor.clone());
    }
    for (int i = 0; i < kStepsBefore; ++i) {
      step();
    }
    zero_grad();  // gradients of the graph lie in its memory
    graph_ = graphs_->make_graph();
    graph_->capture([this] { step(); });
  }

  void train(int64_t updates) override {
    for (int64_t i = 0; i < updates; ++i) {
      for (const auto& [name, tensor] : batches_.next().items()) {
        input_[name].copy_(tensor, /*non_blocking=*/true);
      }
      graph_->launch();
    }
  }

  double loss() const override { return loss_.item<double>(); }

 private:
  static constexpr int kStepsBefore = 3;  // cuBLAS and cuDNN make their memory in them

  void zero_grad() {
    for (at::Tensor& parameter : parameters_) {
      parameter.mutable_grad().reset();
    }
  }

  void step() {
    zero_grad();
    loss_ = loss_of(*net_, input_, place_);
    loss_.backward();
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> grads;
    for (const at::Tensor& parameter : parameters_) {
      grads.push_back(parameter.grad());
    }
    update(grads);
  }

  void update(const std::vector<at::Tensor>& grads) {
    if (w_.rule == Rule::SgdMomentum) {
      call_by_name("aten::_fused_sgd_",
                   {parameters_,
                    grads,
                    first_moments_,
                    /*weight_decay=*/0.0,
                    /*momentum=*/0.9,
                    w_.lr,
                    /*dampening=*/0.0,
                    /*nesterov=*/false,
                    /*maximize=*/false,
                    /*is_first_step=*/false,
                    /*grad_scale=*/c10::IValue(),
                    /*found_inf=*/c10::IValue()});
      return;
    }
    const bool is_decoupled = w_.rule == Rule::AdamW;
    at::_foreach_add_(counts_, 1);
    call_by_name(is_decoupled ? "aten::_fused_adamw_" : "aten::_fused_adam_",
                 {parameters_,
                  grads,
                  first_moments_,
                  second_moments_,
                  /*max_exp_avg_sqs=*/std::vector<at::Tensor>(),
                  counts_,
                  w_.lr,
                  /*beta1=*/0.9,
                  /*beta2=*/0.999,
                  /*weight_decay=*/is_decoupled ? 0.01 : 0.0,
                  /*eps=*/1e-8,
                  /*amsgrad=*/false,
                  /*maximize=*/false,
                  /*grad_scale=*/c10::IValue(),
                  /*found_inf=*/c10::IValue()});
  }

  Workload w_;
  Place place_;
  RepeatedBatch batches_;
  Batch input_;
  std::unique_ptr<DeviceGraphs> graphs_;
  std::shared_ptr<bench::Network> net_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> first_moments_;
  std::vector<at::Tensor> second_moments_;
  std::vector<at::Tensor> counts_;
  at::Tensor loss_;
  std::unique_ptr<DeviceGraph> graph_;
};

BackendOptions backend_options(const std::string& name, const Settings& settings) {
  BackendOptions options;
  options.mode = name == "eager" ? "eager" : "traced";
  options.executor = name == "traced-interpreter" ? "interpreter" : "plan";
  options.threads = settings.threads;
  options.exact = settings.exact;
  options.timed_replays = settings.timed_replays;
  options.device = settings.device;
  options.verify = "first";  // the others become rare; here they would fall into some rounds
  return options;
}

/// The step under a backend, and nothing around it.
class Step final : public Contender {
 public:
  Step(const Workload& w, const std::string& name, const Settings& settings)
      : w_(w),
        place_(place_of(settings)),
        precision_(settings.precision),
        batches_(w, settings.copies, place_.device),
        scratch_(name),
        backend_(make_backend(backend_options(name, settings), TextLog(LogLevel::Warning))) {
    net_ = seeded_network(w, place_.device);
    optimizer_ = optimizer_of(w).make();
    NamedTensors parameters;
    for (const auto& parameter : net_->named_parameters()) {
      parameters.emplace_back(parameter.key(), parameter.value());
    }
    optimizer_->attach(parameters);
    backend_->set_state([this] { return state(); });
  }

  void train(int64_t updates) override {
    for (int64_t i = 0; i < updates; ++i, ++update_) {
      for (int64_t m = 0; m < w_.micro_batches; ++m) {
        run({m == 0, m + 1 == w_.micro_batches, w_.micro_batches});
      }
      if (is_save_due(w_, update_)) {
        save();
      }
    }
  }

  double loss() const override { return outputs_["loss"].item<double>(); }

  std::string timeline() const override {
    std::string text;
    for (const StepReport& report : backend_->reports()) {
      text += timeline_table(report.timeline);
    }
    return text;
  }

 private:
  CapturedState state() const {
    CapturedState all = optimizer_->captured_state();
    for (const auto& parameter : net_->named_parameters()) {
      all.emplace_back(parameter.key(), parameter.value());
    }
    for (const auto& buffer : net_->named_buffers()) {
      all.emplace_back(buffer.key(), buffer.value());
    }
    return all;
  }

  void save() const {
    StateDict saved;
    for (const auto& [name, tensor] : state()) {
      if (tensor.defined()) {
        saved.set(name, tensor.detach());
      }
    }
    write_checkpoint(*real_file_system(), scratch_.path() / "checkpoint.pt", saved);
  }

  void run(const GroupPosition& position) {
    const auto body = [&](const Batch& batch) { return step(batch, position); };
    const auto is_due = [&](const Cadence&) { return update_ % kLogEvery == 0; };
    outputs_ =
        backend_->run({"train", position, precision_}, batches_.next(), body, is_due, queue_);
    if (position.size > 1) {
      optimizer_->bind_grads(!position.is_last);
    }
    for (const StepClosure& closure : queue_) {
      closure.run(closure.tensors);
    }
    queue_.clear();
  }

  Outputs step(const Batch& batch, const GroupPosition& position) {
    if (position.is_first) {
      optimizer_->zero_grad();
    }
    const at::Tensor loss = loss_of(*net_, batch, place_);
    (position.size > 1 ? loss / static_cast<double>(position.size) : loss).backward();
    if (!position.is_last) {
      optimizer_->keep_grads();
      return Outputs{{"loss", loss}};
    }
    if (w_.is_scheduled) {
      backend_->host_call("schedule",
                          {optimizer_->groups()[0]["lr"]},
                          [this](const std::vector<at::Tensor>& numbers) {
                            *numbers[0].data_ptr<double>() = cosine(w_.lr, update_);
                          });
      backend_->defer(
          {{loss},
           [this](const std::vector<at::Tensor>& tensors) { logged_ = tensors[0].item<double>(); },
           {}});
    }
    // As a Trainer has it: no host code between clipping and the update.
    if (w_.clip_norm > 0.0) {
      clip_by_norm_(optimizer_->grads(), w_.clip_norm);
    }
    optimizer_->step();
    optimizer_->zero_grad();
    return Outputs{{"loss", loss}};
  }

  Workload w_;
  Place place_;
  std::string precision_;
  RepeatedBatch batches_;
  Scratch scratch_;
  std::unique_ptr<Backend> backend_;
  std::shared_ptr<bench::Network> net_;
  std::unique_ptr<Optimizer> optimizer_;
  Outputs outputs_;
  ClosureQueue queue_;
  int64_t update_ = 0;
  double logged_ = 0.0;
};

/// The whole framework around the traced step.
class Fit final : public Contender {
 public:
  Fit(const Workload& w, const Settings& settings, int64_t updates) {
    TrainerOptions options;
    options.model_dir = scratch_.path();
    options.seed = kSeed;
    options.model = model_of(w);
    options.optimizer = optimizer_of(w);
    options.backend = backend_options("traced", settings);
    options.precision.dtype = settings.precision;
    options.loop.max_steps = updates;
    options.loop.eval_frequency = 0;
    options.loop.grad_accum_steps = w.micro_batches;
    if (w.clip_norm > 0.0) {
      options.precision.max_gradient_norm = w.clip_norm;
    }
    if (w.is_scheduled) {
      CosineDecayLR::Options schedule;
      schedule.initial_learning_rate = w.lr;
      schedule.total_iters = kScheduleLength;
      options.schedulers = {use<CosineDecayLR>(schedule)};
    }
    options.checkpoint.steps = w.is_saved ? kSaveEvery : 0;
    options.checkpoint.save_final_checkpoint = w.is_saved;
    options.logging.log_steps = w.is_scheduled ? kLogEvery : 50;
    options.logging.log_level = "error";
    options.loggers = {use<ProgressLogger>(), use<JsonlLogger>()};
#ifdef RONDO_HAS_TENSORBOARD
    options.loggers.push_back(use<TensorBoardLogger>());
#endif
    const Batch batch = make_batch(w);
    LoaderOptions batches;
    batches.batch_size = batch.size();
    TensorMap data;
    for (const auto& [name, tensor] : batch.items()) {
      std::vector<int64_t> times(static_cast<size_t>(tensor.dim()), 1);
      times[0] = kBatchesOfAPass;
      data.set(name, tensor.repeat(times));
    }
    trainer_ = std::make_unique<Trainer>(options);
    run_ = trainer_->start_fit(
        DataLoader("train", from_tensors(data), batches), {}, LoadFrom::nothing());
    run_->advance();  // begins the stage; trains nothing yet
    micro_batches_ = w.micro_batches;
  }

  ~Fit() override {
    run_.reset();
    trainer_.reset();
  }

  void train(int64_t updates) override {
    const RngScope rng(*trainer_);
    for (int64_t i = 0; i < updates * micro_batches_; ++i) {
      run_->advance();
    }
  }

  double loss() const override {
    return trainer_->state().last_metrics.number("loss").value_or(-1.0);
  }

  void wait() const override {
    trainer_->state().backend->synchronize();
  }

 private:
  Scratch scratch_{"fit"};
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<FitRun> run_;
  int64_t micro_batches_ = 1;
};

}  // namespace

Batch make_batch(const Workload& w) {
  torch::manual_seed(kSeed + 1);
  return w.make_batch();
}

Place place_of(const Settings& settings) {
  const std::map<std::string, std::optional<c10::ScalarType>> formats = {
      {"fp32", std::nullopt}, {"bf16", at::kBFloat16}, {"fp16", at::kHalf}};
  return {c10::Device(settings.device), formats.at(settings.precision)};
}

std::unique_ptr<Contender> make_contender(const Workload& w,
                                          const std::string& name,
                                          const Settings& settings,
                                          int64_t updates) {
  if (name == "libtorch") {
    return std::make_unique<HandWritten>(w, settings);
  }
  if (name == "graph") {
    return std::make_unique<HandMadeGraph>(w, settings);
  }
  if (name == "fit") {
    return std::make_unique<Fit>(w, settings, updates);
  }
  return std::make_unique<Step>(w, name, settings);
}

}  // namespace bench
