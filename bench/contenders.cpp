#include "contenders.h"

#include <torch/torch.h>

#include <utility>
#include <vector>

#include "backends/backend.h"
#include "by_hand.h"
#include "callbacks/core/reproducibility_callback.h"
#include "checkpoint/checkpoint_file.h"
#include "contender_parts.h"
#include "core/file_system.h"
#include "data/tensor_dataset.h"
#include "loggers/loggers.h"
#include "loops/fit_run.h"
#include "optim/clip.h"
#include "optim/optimizers.h"
#include "optim/schedulers.h"
#include "tracing/make_backend.h"
#include "tracing/timeline.h"
#include "trainer/trainer.h"

namespace bench {

using namespace rondo;

namespace {

constexpr int64_t kBatchesOfAPass = 64;

Factory<Optimizer> optimizer_of(const Workload& w) {
  if (w.rule == Rule::SgdMomentum) {
    Sgd::Options sgd;
    sgd.lr = w.lr;
    sgd.momentum = 0.9;
    return use<Sgd>(sgd);
  }
  return w.rule == Rule::Adam ? use<Adam>({w.lr}) : use<AdamW>({w.lr});
}

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

std::unique_ptr<Contender> make_contender(const Workload& w,
                                          const std::string& name,
                                          const Settings& settings,
                                          int64_t updates) {
  if (name == "libtorch") {
    return make_hand_written(w, settings);
  }
  if (name == "graph") {
    return make_hand_made_graph(w, settings);
  }
  if (name == "fit") {
    return std::make_unique<Fit>(w, settings, updates);
  }
  return std::make_unique<Step>(w, name, settings);
}

}  // namespace bench
