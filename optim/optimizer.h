#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/factory.h"
#include "core/named_tensor.h"
#include "core/state_dict.h"

namespace rondo {

/// The name of a run's only optimizer.
inline constexpr const char* kDefaultOptimizer = "default";

/// A trained tensor with what the optimizer keeps for it.
class Parameter {
 public:
  Parameter(std::string name, at::Tensor value, NamedTensors state);

  std::string name;  ///< as in the model's state, such as "layers.0.weight"
  at::Tensor value;  ///< the module's own parameter, or its float32 master

  /// Undefined when the last backward did not reach the parameter.
  const at::Tensor& grad() const { return value.grad(); }

  /// \throws UsageError  when the optimizer keeps no such tensor, naming those it keeps
  at::Tensor& state(std::string_view state_name);

  const NamedTensors& states() const { return states_; }

 private:
  NamedTensors states_;
};

/// Parameters that share their numbers. `group["lr"]` is a 0-dim float64 tensor on the CPU that a
/// scheduler writes and the update reads: nothing of it is baked into a recorded step.
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

/// Parameters picked by name, with numbers of their own. The first entry that matches wins.
struct ParamGroupOptions {
  std::vector<std::string> params = {};  ///< globs of parameter names
  std::string tag = "";                  ///< for schedulers that drive this group only
  /// Such as {"weight_decay", 0.0}; also {"adjust_learning_rate", factor} of lr and its schedules,
  /// and {"max_dims", n}, which picks only parameters of that many dimensions.
  std::vector<std::pair<std::string, double>> numbers = {};
};

/// Whether weights in half precision are updated in float32.
enum class Masters { None, Float32 };

/// A tensor that an optimizer keeps for a parameter, of the parameter's dtype, zero at first.
struct StateShape {
  std::string name;
  std::vector<int64_t> sizes;
};

/// Base of rondo's optimizers: holds groups and state, an optimizer adds `update`. Its update is
/// one dispatcher operator over a group (or tensor work), so eager and traced steps run the same
/// code.
class Optimizer {
 public:
  using Component = Optimizer;
  using Options = NoOptions;
  using Numbers = std::vector<std::pair<std::string, double>>;
  /// Computes loss and gradients again. \return the loss
  using Evaluate = std::function<at::Tensor()>;

  /// \param numbers      what a scheduler may move, with the defaults of every group
  /// \param state_names  tensors kept for each parameter, zeros of its shape at the beginning
  /// \param groups       parameters that get numbers of their own
  /// \param counters     0-dim float64 tensors kept for each parameter, zero at the beginning
  /// \throws UsageError  when a group names no glob, or sets a number that does not exist
  Optimizer(Numbers numbers,
            std::vector<std::string> state_names,
            std::vector<ParamGroupOptions> groups = {},
            std::vector<std::string> counters = {});
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual ~Optimizer() = default;

  /// What the run calls it: "default" for the only one.
  const std::string& name() const { return name_; }

  void set_name(std::string name) { name_ = std::move(name); }

  /// Takes the parameters of a model, once, before anything else. Those that require no gradient
  /// are left out; a tensor that stands under two names is taken once, under the first. The
  /// parameters that no group picks form the first group, which is left out when there are none.
  ///
  /// The memory of parameters moves into one allocation, and what is kept for them lies in another
  /// (docs/decisions/008): same elements, same tensors, also for views and detached aliases of
  /// them; at an address taken before there is nothing any more. What LibTorch's CPU allocator did
  /// not give stays: memory that is lent, mapped or shared with another process.
  /// \param masters  Float32: each parameter in half precision gets a state "master", which groups
  ///     show as the parameter's value. Updates change masters and round them into the model
  /// \throws UsageError  when a group gets no parameter, or there is nothing to train
  /// \throws NotSupportedError  when they are on several devices, or one is sparse
  void attach(const NamedTensors& parameters, Masters masters = Masters::None);

  /// Updates every group from the gradients; parameters without one are skipped.
  /// \param evaluate  where `needs_evaluate`; empty when the loss cannot be computed again, as at
  ///     the end of a group of batches
  /// \param skip  0-dim bool: true leaves parameters and states as they are. The host does not
  ///     read it, unless the optimizer is `eager_only`. Undefined: false
  /// \throws NotSupportedError  for a sparse gradient
  /// \capture safe
  void step(const Evaluate& evaluate = {}, const at::Tensor& skip = {});

  /// Gives masters the gradients of their parameters, in float32; called before an update.
  /// \capture safe
  void gather_grads();

  /// Sets masters to their parameters: called when something else has written the model.
  /// \capture safe
  void follow_parameters();

  /// The model's tensors that it trains.
  const NamedTensors& trained() const { return parameters_; }

  /// Whether an update tries several points, as LBFGS does.
  virtual bool needs_evaluate() const { return false; }

  /// Why a step with it cannot be recorded, and what to do; "" when it can.
  virtual std::string eager_only() const { return ""; }

  /// Makes every gradient undefined: the next backward writes it anew.
  /// \capture safe
  void zero_grad();

  /// Keeps the gradients past the step, in memory that stays: called after each backward of a group
  /// of batches but the last, so that the next backward adds to them. The memory is one allocation
  /// for all parameters, made at the first call without the dispatcher: no recorded step sees it
  /// made.
  /// \throws NotSupportedError  for a sparse gradient
  /// \capture safe
  void keep_grads();

  /// Binds the kept gradients to their parameters, or makes every gradient undefined, without
  /// touching a byte: what the host sees after a step was replayed rather than run. A parameter
  /// that was frozen since gets none.
  /// \capture host only
  void bind_grads(bool bound);

  /// Defined gradients, in the order in which the parameters were attached; of a parameter with a
  /// master that of the master.
  std::vector<at::Tensor> grads() const;

  std::vector<ParamGroup>& groups() { return groups_; }

  const std::vector<ParamGroup>& groups() const { return groups_; }

  /// {"state": {parameter: {name: tensor}}, "groups": [{"tag", numbers…}]}. Tensors are shared.
  virtual StateDict state_dict() const;

  /// Copies into the tensors in place. Takes what Python's `torch.optim` saved too, where it has as
  /// many parameters and groups, in the same order.
  /// \throws CheckpointError  when parameters or shapes differ; nothing is changed then
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

  /// What is kept for a parameter besides the counters: tensors of its shape, by default.
  virtual std::vector<StateShape> states_of(const NamedTensor& parameter) const;

  /// Called at the end of `attach`.
  virtual void on_attached() {}

  /// Whether `update` itself leaves everything as it is where `skip` says so. Else the base keeps
  /// copies and puts them back.
  virtual bool skips_itself() const { return false; }

  /// What the `step` that is running was given.
  const Evaluate& evaluate() const { return *evaluate_; }

  const at::Tensor& skip() const { return *skip_; }

 private:
  void update_groups();
  void update_unless(const at::Tensor& skip);
  void round_masters();
  ParamGroup make_group(const ParamGroupOptions& options) const;
  std::vector<size_t> groups_of(const NamedTensors& parameters) const;
  std::vector<NamedTensors> make_states(const NamedTensors& parameters) const;

  std::string name_ = kDefaultOptimizer;
  Numbers numbers_;
  std::vector<std::string> state_names_;
  std::vector<ParamGroupOptions> group_options_;
  std::vector<std::string> counters_;
  std::vector<ParamGroup> groups_;
  NamedTensors parameters_;              // of all groups, in the order of attach
  std::vector<at::Tensor> grad_memory_;  // one a parameter, or none yet: in one allocation
  std::vector<at::Tensor> kept_grads_;   // one a parameter; undefined where none was kept
  std::vector<at::Tensor> masters_;      // one a parameter; undefined where it has none
  const Evaluate* evaluate_ = nullptr;   // during a step
  const at::Tensor* skip_ = nullptr;     // during a step
};

}  // namespace rondo
