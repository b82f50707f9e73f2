#include "rondo_step.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <string>

#include "backends/numeric_environment.h"
#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "core/file_system.h"
#include "optim/operators.h"
#include "tracing/exported_step.h"
#include "trainer/c_call.h"

namespace {

using rondo::detail::require_argument;

thread_local std::string step_error;

/// What a description points to.
struct Description {
  std::string name;
  std::vector<int64_t> sizes;
};

using Descriptions = std::map<std::string, Description>;

std::string manifest_text(const rondo::StateDict& manifest) {
  std::string text = fmt::format(
      "rondo {}\nupdate {}\n", manifest.at("rondo").as_string(), manifest.at("update").as_int());
  for (const auto& item : manifest.at("environment").as_dict().items()) {
    const auto& value = item.second.variant();
    if (const auto* word = std::get_if<std::string>(&value)) {
      text += fmt::format("{} {}\n", item.first, *word);
    } else if (const auto* number = std::get_if<int64_t>(&value)) {
      text += fmt::format("{} {}\n", item.first, *number);
    } else if (const auto* truth = std::get_if<bool>(&value)) {
      text += fmt::format("{} {}\n", item.first, *truth);
    }
  }
  return text + manifest.at("config").as_string();
}

}  // namespace

struct rondo_step {
  explicit rondo_step(rondo::StepFile file)
      : step(std::move(file)), manifest(manifest_text(step.file().manifest)) {}

  rondo_tensor input(const rondo::Slot& slot) {
    return describe(described_inputs, slot.name, slot.dtype, slot.sizes);
  }

  rondo_tensor output_or_state(const char* name) {
    const at::Tensor& found = tensor(name);
    return describe(described_others, name, found.scalar_type(), found.sizes().vec());
  }

  const at::Tensor& tensor(const char* name) const {
    const at::Tensor* const found = step.find(name);
    if (found == nullptr) {
      throw rondo::UsageError(
          fmt::format("the step has neither an output nor a state \"{}\"", name));
    }
    return *found;
  }

  rondo::ExportedStep step;
  std::string manifest;
  Descriptions described_inputs;
  Descriptions described_others;  // apart: an output may have an input's name

 private:
  static rondo_tensor describe(Descriptions& known,
                               const std::string& name,
                               at::ScalarType dtype,
                               const std::vector<int64_t>& sizes) {
    const Description& kept = known.emplace(name, Description{name, sizes}).first->second;
    int64_t count = 1;
    for (const int64_t size : sizes) {
      count *= size;
    }
    return {kept.name.c_str(),
            static_cast<rondo_dtype>(dtype),
            static_cast<int64_t>(kept.sizes.size()),
            kept.sizes.data(),
            static_cast<size_t>(count) * c10::elementSize(dtype)};
  }
};

namespace {

/// Runs `work`; what it throws becomes a text. \return 1, or 0 when it threw
template <class Work>
int step_call(const Work& work) {
  const auto done = [&] {
    work();
    return 1;
  };
  return rondo::detail::c_call(step_error, done, [](const std::exception_ptr&) { return 0; });
}

void require_bytes(const char* name, size_t needed, size_t given) {
  if (needed != given) {
    throw rondo::UsageError(fmt::format("\"{}\" has {} bytes, got {}", name, needed, given));
  }
}

}  // namespace

rondo_step* rondo_step_open(const char* path) {
  std::unique_ptr<rondo_step> step;
  step_call([&] {
    require_argument(path, "path");
    rondo::register_optimizer_operators();
    rondo::StepFile file = rondo::step_file_from(rondo::read_checkpoint(path));
    rondo::use_threads(rondo::environment_from(file.manifest.at("environment").as_dict()).threads);
    step = std::make_unique<rondo_step>(std::move(file));
  });
  return step.release();
}

void rondo_step_close(rondo_step* step) {
  delete step;
}

const char* rondo_step_error(void) {
  return step_error.c_str();
}

const char* rondo_step_manifest(rondo_step* step) {
  return step == nullptr ? "" : step->manifest.c_str();
}

int64_t rondo_step_inputs(rondo_step* step) {
  return step == nullptr ? 0 : static_cast<int64_t>(step->step.inputs().size());
}

int rondo_step_input(rondo_step* step, int64_t index, rondo_tensor* tensor) {
  return step_call([&] {
    require_argument(step, "step");
    require_argument(tensor, "tensor");
    const std::vector<rondo::Slot>& inputs = step->step.inputs();
    if (index < 0 || index >= static_cast<int64_t>(inputs.size())) {
      throw rondo::UsageError(
          fmt::format("the step has {} inputs, asked for number {}", inputs.size(), index));
    }
    *tensor = step->input(inputs[static_cast<size_t>(index)]);
  });
}

int rondo_step_find(rondo_step* step, const char* name, rondo_tensor* tensor) {
  return step_call([&] {
    require_argument(step, "step");
    require_argument(name, "name");
    require_argument(tensor, "tensor");
    *tensor = step->output_or_state(name);
  });
}

int rondo_step_bind(rondo_step* step, const char* name, const void* data, size_t bytes) {
  return step_call([&] {
    require_argument(step, "step");
    require_argument(name, "name");
    require_argument(data, "data");
    for (const rondo::Slot& slot : step->step.inputs()) {
      if (slot.name == name) {
        require_bytes(name, step->input(slot).bytes, bytes);
      }
    }
    step->step.bind(name, data);
  });
}

int rondo_step_run(rondo_step* step) {
  bool is_guarded = false;
  const int is_done = step_call([&] {
    require_argument(step, "step");
    try {
      step->step.run();
    } catch (const rondo::StepGuardError&) {
      is_guarded = true;
      throw;
    }
  });
  return is_guarded ? RONDO_STEP_GUARD : is_done;
}

int rondo_step_read(rondo_step* step, const char* name, void* data, size_t bytes) {
  return step_call([&] {
    require_argument(step, "step");
    require_argument(name, "name");
    require_argument(data, "data");
    const at::Tensor plain = step->tensor(name).detach().contiguous();
    require_bytes(name, plain.nbytes(), bytes);
    std::memcpy(data, plain.data_ptr(), bytes);
  });
}

int rondo_step_save(rondo_step* step, const char* path) {
  return step_call([&] {
    require_argument(step, "step");
    require_argument(path, "path");
    rondo::write_checkpoint(*rondo::real_file_system(), path, rondo::to_state(step->step.file()));
  });
}
