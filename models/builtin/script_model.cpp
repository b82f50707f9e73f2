#include "models/builtin/script_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <unordered_set>

#include "core/file_system.h"
#include "core/require.h"
#include "models/from_module.h"
#include "models/module_model.h"
#include "models/register.h"

namespace rondo {

namespace {

Loss script_loss(const ScriptModel::Options& options) {
  if (options.loss == "none") {
    return {};
  }
  return options.loss == "mse" ? mse(options.target) : cross_entropy(options.target);
}

torch::jit::Module load_script(const std::filesystem::path& path) {
  // LibTorch reports a missing file and a broken one alike.
  if (std::ifstream file(path, std::ios::binary); !file) {
    throw IoError("ScriptModel: cannot open " + path.string(), errno);
  }
  torch::jit::getProfilingMode() = false;
  try {
    return torch::jit::load(path.string(), at::Device(at::kCPU));
  } catch (const c10::Error&) {
    std::throw_with_nested(DataError("ScriptModel: " + path.string() + " is no TorchScript file"));
  }
}

/// The nested child of `root` that holds "a.b.name", which is made on the way, and "name".
std::pair<torch::nn::Module*, std::string> place_of(torch::nn::Module& root, std::string name) {
  torch::nn::Module* place = &root;
  for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.')) {
    const std::string child = name.substr(0, dot);
    const auto children = place->named_children();
    const auto* found = children.find(child);
    place = found != nullptr
                ? found->get()
                : place->register_module(child, std::make_shared<torch::nn::Module>(child)).get();
    name.erase(0, dot + 1);
  }
  return {place, name};
}

/// Registers the script's own tensors with `root`, so that what is done to one is done to both.
void adopt_tensors(torch::nn::Module& root, const torch::jit::Module& script) {
  std::unordered_set<at::TensorImpl*> seen;
  for (const auto& parameter : script.named_parameters()) {
    if (seen.insert(parameter.value.unsafeGetTensorImpl()).second) {
      const auto [place, name] = place_of(root, parameter.name);
      place->register_parameter(name, parameter.value, parameter.value.requires_grad());
    }
  }
  for (const auto& buffer : script.named_buffers()) {
    if (seen.insert(buffer.value.unsafeGetTensorImpl()).second) {
      const auto [place, name] = place_of(root, buffer.name);
      place->register_buffer(name, buffer.value);
    }
  }
}

class Network final : public ModuleModel {
 public:
  explicit Network(const ScriptModel::Options& options);

  Outputs forward(const Batch& batch) override;

  std::vector<Factory<Metric>> metrics() const override { return loss_.metrics; }

  const torch::jit::Module& script() const { return script_; }

  /// Reaches the script's own modules.
  void train(bool on = true) override;

 private:
  Outputs named(const c10::IValue& result) const;
  [[noreturn]] void refuse(const c10::IValue& result) const;

  ScriptModel::Options options_;
  Loss loss_;
  torch::jit::Module script_;
};

Network::Network(const ScriptModel::Options& options) : options_(options) {
  ScriptModel::check(options);
  loss_ = script_loss(options);
  script_ = load_script(options.path);
  adopt_tensors(*this, script_);
  Network::train(script_.is_training());
}

Outputs Network::forward(const Batch& batch) {
  std::vector<c10::IValue> inputs;
  for (const std::string& name : options_.inputs) {
    inputs.emplace_back(batch[name]);
  }
  // The same operators in every call, as they were written. The setting is one of the thread.
  const torch::jit::GraphOptimizerEnabledGuard no_optimisation(false);
  const c10::IValue result = script_.forward(std::move(inputs));
  Outputs outputs = named(result);
  if (loss_.function && batch.find(loss_.target) != nullptr) {
    const at::Tensor* logits = outputs.find("logits");
    if (logits == nullptr) {
      throw UsageError(
          fmt::format("ScriptModel: the loss \"{}\" is one of \"logits\", which {} does not return",
                      options_.loss,
                      options_.path.string()));
    }
    outputs.set("loss", loss_.function(*logits, batch));
  }
  return outputs;
}

Outputs Network::named(const c10::IValue& result) const {
  Outputs outputs;
  if (result.isGenericDict()) {
    for (const auto& item : result.toGenericDict()) {
      if (!item.key().isString() || !item.value().isTensor()) {
        refuse(result);
      }
      outputs.set(item.key().toStringRef(), item.value().toTensor());
    }
    return outputs;
  }
  std::vector<c10::IValue> values{result};
  if (result.isTuple()) {
    values = result.toTupleRef().elements().vec();
  } else if (result.isList()) {
    values = result.toListRef().vec();
  }
  if (values.size() != options_.outputs.size()) {
    refuse(result);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].isTensor()) {
      refuse(result);
    }
    outputs.set(options_.outputs[i], values[i].toTensor());
  }
  return outputs;
}

void Network::refuse(const c10::IValue& result) const {
  throw UsageError(
      fmt::format("ScriptModel: {} must return tensors for the outputs {}, or a dictionary of "
                  "tensors by name; it returned {}",
                  options_.path.string(),
                  fmt::join(options_.outputs, ", "),
                  result.type()->repr_str()));
}

void Network::train(bool on) {
  torch::nn::Module::train(on);
  script_.train(on);
}

}  // namespace

void ScriptModel::check(const Options& options) {
  detail::require(!options.path.empty(), "ScriptModel: path", "given", "nothing");
  detail::require(!options.inputs.empty(), "ScriptModel: inputs", "at least one name", "none");
  detail::require(!options.outputs.empty(), "ScriptModel: outputs", "at least one name", "none");
  detail::require(
      options.loss == "cross_entropy" || options.loss == "mse" || options.loss == "none",
      "ScriptModel: loss",
      "\"cross_entropy\", \"mse\" or \"none\"",
      options.loss);
}

ScriptModel::ScriptModel(const Options& options)
    : WrappedModel(std::make_unique<Network>(options)) {}

void ScriptModel::save(const std::filesystem::path& path) {
  std::ostringstream bytes;
  static_cast<Network&>(module()).script().save(bytes);
  write_atomically(*real_file_system(), path, bytes.str());
}

void register_script_model(Registry<Model>& registry) {
  using Options = ScriptModel::Options;
  registry.add<ScriptModel>("ScriptModel", "The model of a TorchScript file.")
      .key("path", &Options::path, "where the TorchScript file is")
      .required()
      .key("inputs", &Options::inputs, "names in the batch, in the order of the script's forward")
      .key("outputs",
           &Options::outputs,
           "names of what the script returns, in order; a dictionary has its own")
      .key("loss",
           &Options::loss,
           one_of({"cross_entropy", "mse", "none"}),
           "what compares \"logits\" with the target; none: the script's own \"loss\", if any")
      .key("target", &Options::target, "name in the batch of what the loss compares with");
}

}  // namespace rondo
