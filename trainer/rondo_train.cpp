#include "rondo_train.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/scoped.h"
#include "callbacks/core/forward_pass.h"
#include "configs/toml_file.h"
#include "core/error.h"
#include "core/quiet_metrics.h"
#include "data/streams/sample_ring.h"
#include "loops/fit_run.h"
#include "models/model.h"
#include "trainer/auto_options.h"
#include "trainer/c_call.h"
#include "trainer/run_config.h"
#include "trainer/trainer.h"

namespace {

using rondo::detail::require_argument;

thread_local std::string train_error;

/// A fault that has a code of its own.
struct CodedError : rondo::Error {
  CodedError(int its_code, const std::string& message) : Error(message), code(its_code) {}

  int code;
};

int code_of(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const CodedError& coded) {
    return coded.code;
  } catch (const rondo::ConfigError&) {
    return RONDO_BAD_CONFIG;
  } catch (const rondo::UsageError&) {
    return RONDO_BAD_USE;
  } catch (...) {
    return RONDO_ERROR;
  }
}

/// Runs `work`, which gives a code; what it throws becomes a code and a text.
template <class Work>
int train_call(const Work& work) noexcept {
  return rondo::detail::c_call(train_error, work, code_of);
}

bool is_dtype(int number) {
  return (number >= RONDO_UINT8 && number <= RONDO_FLOAT64) || number == RONDO_BOOL ||
         number == RONDO_BFLOAT16;
}

/// A view of the caller's memory, to be copied before the call returns.
at::Tensor view_of(const rondo_array& array) {
  require_argument(array.name, "the name of a tensor");
  const auto fault = [&](const std::string& what) {
    return rondo::UsageError(fmt::format("tensor \"{}\": {}", array.name, what));
  };
  constexpr int64_t kMostDimensions = 64;
  if (!is_dtype(array.dtype)) {
    throw fault(fmt::format("{} is not a rondo_dtype", static_cast<int>(array.dtype)));
  }
  if (array.dims < 0 || array.dims > kMostDimensions || (array.dims > 0 && !array.sizes)) {
    throw fault(fmt::format("{} dimensions, or sizes that are null", array.dims));
  }
  const std::vector<int64_t> sizes(array.sizes, array.sizes + array.dims);
  int64_t elements = 1;
  for (const int64_t size : sizes) {
    if (size < 0 || __builtin_mul_overflow(elements, size, &elements)) {
      throw fault(fmt::format("a size of {}", size));
    }
  }
  if (array.data == nullptr && elements > 0) {
    throw fault("data is null");
  }
  return at::from_blob(
      const_cast<void*>(array.data), sizes, static_cast<at::ScalarType>(array.dtype));
}

template <class Map>
Map views_of(const rondo_array* arrays, int64_t count) {
  require_argument(arrays, "tensors");
  if (count < 1) {
    throw rondo::UsageError(fmt::format("{} tensors, where at least one is needed", count));
  }
  Map views;
  for (int64_t i = 0; i < count; ++i) {
    views.set(arrays[i].name == nullptr ? "" : arrays[i].name, view_of(arrays[i]));
  }
  return views;
}

/// Sets a model to eval mode while it lives; then each of its modules to the mode that it had.
class EvalScope {
 public:
  explicit EvalScope(torch::nn::Module& module)
      : module_(module), was_training_(module.is_training()) {
    for (const auto& below : module.modules(/*include_self=*/false)) {
      modes_.emplace_back(below, below->is_training());
    }
    module.eval();
  }

  EvalScope(const EvalScope&) = delete;
  EvalScope& operator=(const EvalScope&) = delete;

  ~EvalScope() {
    module_.train(was_training_);
    for (const auto& [below, is_training] : modes_) {  // parents come before their children
      below->train(is_training);
    }
  }

 private:
  torch::nn::Module& module_;
  bool was_training_;
  std::vector<std::pair<std::shared_ptr<torch::nn::Module>, bool>> modes_;
};

rondo::RunConfig run_of(const char* toml, rondo::Registries& registries) {
  const rondo::ConfigValue root = rondo::read_toml_file(toml);
  rondo::register_builtins(registries);
  for (const std::filesystem::path& plugin : rondo::plugins_of(root)) {
    rondo::load_plugin(plugin, registries);
  }
  rondo::RunConfig run = rondo::read_run_config(root, registries);
  if (!run.fit) {
    throw rondo::UsageError(fmt::format("{}: it has no [trainer.fit]", toml));
  }
  rondo::resolve_auto(run, registries);
  return run;
}

}  // namespace

struct rondo_trainer {
  explicit rondo_trainer(const char* toml) : run(run_of(toml, registries)), trainer(run.init) {
    if (const auto* data = dynamic_cast<const rondo::RingDataset*>(&run.fit->train.source())) {
      ring = data->ring();
    }
  }

  /// The fit, which begins here the first time.
  rondo::FitRun& fit() {
    if (!is_begun) {
      is_begun = true;
      running = trainer.start_fit(run.fit->train, run.fit->val, run.fit->from);
    }
    if (running == nullptr) {
      throw rondo::UsageError("the fit ended with an error; close the trainer and open it again");
    }
    return *running;
  }

  int train_steps(int64_t updates) {
    return train([&](rondo::FitRun& one) {
      const int64_t end = trainer.state().global_step() + updates;  // behind what was loaded
      bool goes_on = true;
      while (goes_on && trainer.state().global_step() < end) {
        goes_on = one.advance();
      }
      return goes_on;
    });
  }

  int train_for(double seconds) {
    return train([&](rondo::FitRun& one) {
      return one.advance_for(
          std::chrono::nanoseconds(static_cast<int64_t>(std::llround(seconds * 1e9))));
    });
  }

  rondo::Registries registries;
  rondo::RunConfig run;
  rondo::Trainer trainer;
  std::shared_ptr<rondo::SampleRing> ring;  // null for other data
  bool is_begun = false;
  std::unique_ptr<rondo::FitRun> running;  // ends before the trainer

 private:
  template <class Train>
  int train(const Train& one_call) {
    rondo::FitRun& one = fit();
    try {
      return one_call(one) ? RONDO_OK : RONDO_DONE;
    } catch (...) {
      running.reset();
      throw;
    }
  }
};

int rondo_open(const char* toml, rondo_trainer** trainer) {
  return train_call([&] {
    require_argument(toml, "toml");
    require_argument(trainer, "trainer");
    *trainer = nullptr;
    *trainer = new rondo_trainer(toml);
    return RONDO_OK;
  });
}

int rondo_push(rondo_trainer* trainer, const rondo_array* tensors, int64_t count) {
  return train_call([&] {
    require_argument(trainer, "trainer");
    if (trainer->ring == nullptr) {
      throw rondo::UsageError("the training data is not a SampleRing: nothing can be pushed");
    }
    std::string why;
    const auto views = views_of<rondo::TensorMap>(tensors, count);
    switch (trainer->ring->push(views, {}, &why)) {
      case rondo::SampleRing::Push::Stored:
        return static_cast<int>(RONDO_OK);
      case rondo::SampleRing::Push::Overwrote:
        return static_cast<int>(RONDO_OVERWROTE);
      case rondo::SampleRing::Push::Dropped:
        return static_cast<int>(RONDO_DROPPED);
      case rondo::SampleRing::Push::Mismatch:
        throw CodedError(RONDO_MISMATCH, "the sample differs from earlier ones: " + why);
      default:
        throw rondo::UsageError("the ring is closed");
    }
  });
}

int rondo_train_steps(rondo_trainer* trainer, int64_t updates) {
  return train_call([&] {
    require_argument(trainer, "trainer");
    if (updates < 0) {
      throw rondo::UsageError(fmt::format("{} updates", updates));
    }
    return trainer->train_steps(updates);
  });
}

int rondo_train_for(rondo_trainer* trainer, double seconds) {
  return train_call([&] {
    constexpr double kMost = 1e9;
    require_argument(trainer, "trainer");
    if (!(seconds >= 0) || seconds > kMost) {
      throw rondo::UsageError(fmt::format("{} seconds; at most {}", seconds, kMost));
    }
    return trainer->train_for(seconds);
  });
}

int64_t rondo_updates(const rondo_trainer* trainer) {
  return trainer == nullptr ? -1 : trainer->trainer.state().global_step();
}

int rondo_infer(rondo_trainer* trainer,
                const rondo_array* inputs,
                int64_t count,
                const char* output,
                void* data,
                size_t bytes,
                size_t* needed) {
  return train_call([&] {
    require_argument(trainer, "trainer");
    require_argument(output, "output");
    if (trainer->running != nullptr) {
      trainer->running->finish_step();
    }
    rondo::Trainer& owner = trainer->trainer;
    rondo::Model& model = *owner.state().model;
    const auto batch =
        owner.state().backend->stage(rondo::Batch(views_of<rondo::Batch>(inputs, count)));
    const EvalScope eval(model.module());
    const at::NoGradGuard no_grad;
    const rondo::QuietMetrics quiet;
    const rondo::Scoped<bool> not_training(owner.state().is_training, false);
    const rondo::Outputs outputs = rondo::forward_pass(owner, batch);
    const at::Tensor found = outputs[output].detach().cpu().contiguous();
    if (needed != nullptr) {
      *needed = found.nbytes();
    }
    if (found.nbytes() > bytes) {
      throw CodedError(
          RONDO_TOO_SMALL,
          fmt::format(
              "output \"{}\" has {} bytes, but the buffer has {}", output, found.nbytes(), bytes));
    }
    require_argument(data, "data");
    std::memcpy(data, found.data_ptr(), found.nbytes());
    return RONDO_OK;
  });
}

int rondo_save(rondo_trainer* trainer) {
  return train_call([&] {
    require_argument(trainer, "trainer");
    if (trainer->running != nullptr) {
      trainer->running->finish_step();
    }
    trainer->trainer.save_checkpoint();
    return RONDO_OK;
  });
}

const char* rondo_last_error(void) {
  return train_error.c_str();
}

void rondo_close(rondo_trainer* trainer) {
  train_call([&] {
    if (trainer != nullptr && trainer->ring != nullptr) {
      trainer->ring->close();
    }
    delete trainer;
    return RONDO_OK;
  });
}
