#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/factory.h"
#include "core/named_tensor.h"
#include "core/state_dict.h"

namespace rondo {

class UpdateSharing;

/// The name of a run's only optimizer.
inline constexpr const char* kDefaultOptimizer = "default";

/// A trained tensor with its optimizer state.
class Parameter {
 public:
  Parameter(std::string name, at::Tensor value, NamedTensors state);

  std::string name;  ///< as in the model's state, such as "layers.0.weight"
  at::Tensor value;  ///< the module's own parameter, or its float32 master

  /// Undefined when the last backward did not reach the parameter.
  const at::Tensor& grad() const { return value.grad(); }

  /// \throws UsageError  when the optimizer keeps no such tensor, naming those it keeps
  at::Tensor& state(std::string_view state_name);

  /// None, or the master alone, where another process updates the parameter.
  const NamedTensors& states() const { return states_; }

 private:
  NamedTensors states_;
};

/// Parameters that share their numbers (hyperparameters). `group["lr"]` is a 0-dim float64 tensor
/// on the CPU that a scheduler writes and the update reads: a recorded step bakes in none of it.
class ParamGroup {
 public:
  ParamGroup(std::string group_tag, NamedTensors numbers)
      : tag(std::move(group_tag)), numbers_(std::move(numbers)) {}

  std::string tag;  ///< "" for the default group
  std::vector<Parameter> params;

  /// \throws UsageError  when the optimizer has no such number, naming those it has
  at::Tensor& operator[](std::string_view number);

  const NamedTensors& numbers() const { return numbers_; }

 private:
  NamedTensors numbers_;
};

/// Parameters picked by name, with their own numbers. The first entry that matches wins.
struct ParamGroupOptions {
  std::vector<std::string> params = {};  ///< globs of parameter names
  std::string tag = "";                  ///< for schedulers that drive this group only
  /// Such as {"weight_decay", 0.0}; also {"adjust_learning_rate", factor}, which scales lr and its
  /// schedules, and {"max_dims", n}, which picks only parameters of at most n dimensions.
  std::vector<std::pair<std::string, double>> numbers = {};
};

/// Whether weights in half precision are updated in float32.
enum class Masters { None, Float32 };

/// A tensor that an optimizer keeps for a parameter, of the parameter's dtype, initially zero.
struct StateShape {
  std::string name;
  std::vector<int64_t> sizes;
};

/// Base of rondo's optimizers: holds groups and state, an optimizer adds `update`. An update is one
/// dispatcher operator per group (or tensor work), so eager and traced steps run the same code.
class Optimizer {
 public:
  using Component = Optimizer;
  using Options = NoOptions;
  using Numbers = std::vector<std::pair<std::string, double>>;
  /// Recomputes loss and gradients. \return the loss
  using Evaluate = std::function<at::Tensor()>;

  /// \param numbers      what a scheduler can drive, with the defaults of every group
  /// \param state_names  tensors kept for each parameter, initially zeros of its shape
  /// \param groups       parameters that get their own numbers
  /// \param counters     0-dim float64 tensors kept for each parameter, initially zero
  /// \throws UsageError  when a group has no glob or sets an unknown number
  Optimizer(Numbers numbers,
            std::vector<std::string> state_names,
            std::vector<ParamGroupOptions> groups = {},
            std::vector<std::string> counters = {});
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  /// Its name in the run: "default" for the only one.
  const std::string& name() const { return name_; }

  void set_name(std::string name) { name_ = std::move(name); }

  /// Takes the parameters of a model; called once, before anything else. Skips those that require
  /// no gradient, and takes a tensor with two names once, under the first. The parameters that no
  /// group picks form the first group, which is omitted when empty.
  ///
  /// Moves the parameters into one allocation and puts their state into another
  /// (docs/decisions/008). Tensors, views and detached aliases keep their elements, but raw
  /// pointers taken earlier dangle. Memory that LibTorch's CPU allocator does not own (from_blob,
  /// mmap, shared) is not moved.
  /// \param masters  Float32: each parameter in half precision gets a state "master", which groups
  ///                 expose as the parameter's value. Updates change masters and round them into
  ///                 the model
  /// \param sharing  with the processes among which updates are shared out; null: none
  /// \throws UsageError  when a group gets no parameter, or there is nothing to train
  /// \throws NotSupportedError  when they are on several devices, or one is sparse
  void attach(const NamedTensors& parameters,
              Masters masters = Masters::None,
              std::shared_ptr<UpdateSharing> sharing = nullptr);

  /// Updates every group from the gradients; parameters without one are skipped.
  /// \param evaluate  used if `needs_evaluate`; empty when the loss cannot be recomputed, as at the
  ///                  end of a group of batches
  /// \param skip  0-dim bool: true leaves parameters and states as they are. The host does not
  ///     read it, unless the optimizer is `eager_only`. Undefined: false
  /// \throws NotSupportedError  for a sparse gradient
  /// \capture safe
  void step(const Evaluate& evaluate = {}, const at::Tensor& skip = {});

  /// Copies gradients to the masters, in float32; called before an update.
  /// \capture safe
  void gather_grads();

  /// Copies parameters to their masters; called after something else has written the model.
  /// \capture safe
  void follow_parameters();

  /// The model's tensors that it trains.
  const NamedTensors& trained() const { return parameters_; }

  /// Whether an update evaluates several points, as LBFGS does.
  virtual bool needs_evaluate() const { return false; }

  /// Why a step with it cannot be recorded, and what to do; "" when it can.
  virtual std::string eager_only() const { return ""; }

  /// Makes every gradient undefined: the next backward writes new ones.
  /// \capture safe
  void zero_grad();

  /// Keeps the gradients beyond the step, in persistent memory, so that the next backward adds to
  /// them. Called after each backward in a group of batches except the last. The first call makes
  /// one allocation for all parameters; it bypasses the dispatcher, so no recorded step contains
  /// it.
  /// \throws NotSupportedError  for a sparse gradient
  /// \capture safe
  void keep_grads();

  /// Binds the kept gradients to their parameters, or makes every gradient undefined, without
  /// touching a byte. After a replay the host then sees the same gradients as after an eager step.
  /// A parameter that was frozen meanwhile gets none.
  /// \capture host only
  void bind_grads(bool bound);

  /// Defined gradients, in the order in which the parameters were attached; for a parameter with a
  /// master, the master's.
  std::vector<at::Tensor> grads() const;

  std::vector<ParamGroup>& groups() { return groups_; }

  const std::vector<ParamGroup>& groups() const { return groups_; }

  /// Whether other processes keep the state of some parameters.
  bool is_shared() const { return sharing_ != nullptr; }

  /// {"state": {parameter: {name: tensor}}, "groups": [{"tag", numbers…}]}. Tensors are shared.
  /// What another process keeps is a tensor on the device `meta`, which has no memory.
  virtual StateDict state_dict() const;

  /// Copies into the tensors in place. Also takes what Python's `torch.optim` saved, if it has as
  /// many parameters and groups, in the same order.
  /// \throws CheckpointError  when parameters or shapes differ; then nothing changes
  virtual void load(const StateDict& state);

  /// Whether `state_dict` has the same names, shapes and dtypes at all times.
  virtual bool has_fixed_layout() const { return true; }

  /// Everything that a step may read or write: parameters ("param/…"), their state
  /// ("state/…/name"), the groups' numbers ("group/0/lr"), kept gradients ("grad/…"; there are none
  /// before `keep_grads`).
  NamedTensors captured_state() const;

 protected:
  /// Updates the group's parameters in place from their gradients, outside of autograd. A gradient
  /// may be undefined: that parameter stays as it is.
  /// \capture safe: tensor work only; numbers are read inside operators
  virtual void update(ParamGroup& group) = 0;

  /// The state tensors of a parameter besides the counters; by default of its shape.
  virtual std::vector<StateShape> states_of(const NamedTensor& parameter) const;

  /// Called at the end of `attach`.
  virtual void on_attached() {}

  /// Whether `update` honours `skip` itself. Otherwise the base class keeps copies and restores
  /// them.
  virtual bool skips_itself() const { return false; }

  /// The arguments of the running `step`.
  const Evaluate& evaluate() const { return *evaluate_; }

  const at::Tensor& skip() const { return *skip_; }

 private:
  void update_groups();
  ParamGroup own_part(const ParamGroup& group) const;
  void exchange_values();
  NamedTensors layout_of(const Parameter& parameter) const;
  void update_unless(const at::Tensor& skip);
  void round_masters();
  ParamGroup make_group(const ParamGroupOptions& options) const;
  std::vector<size_t> groups_of(const NamedTensors& parameters) const;
  std::vector<NamedTensors> make_states(const NamedTensors& parameters,
                                        const std::vector<bool>& is_own);

  std::string name_ = kDefaultOptimizer;
  Numbers numbers_;
  std::vector<std::string> state_names_;
  std::vector<ParamGroupOptions> group_options_;
  std::vector<std::string> counters_;
  std::vector<ParamGroup> groups_;
  NamedTensors parameters_;                 // of all groups, in the order of attach
  std::vector<at::Tensor> grad_memory_;     // one a parameter, or none yet: in one allocation
  std::vector<at::Tensor> kept_grads_;      // one a parameter; undefined where none was kept
  std::vector<at::Tensor> masters_;         // one a parameter; undefined where it has none
  std::shared_ptr<UpdateSharing> sharing_;  // null: all parameters are own
  std::map<std::string, NamedTensors> elsewhere_;  // states that others keep, on `meta`
  const Evaluate* evaluate_ = nullptr;             // during a step
  const at::Tensor* skip_ = nullptr;               // during a step
};

}  // namespace rondo
