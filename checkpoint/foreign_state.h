#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/state_dict.h"

namespace rondo {

/// True for what a rondo run saved. Only such a state has counters and an optimizer to go on with;
/// of every other one the weights are loaded.
bool is_run_state(const StateDict& state);

/// Where weights were in a file that another program wrote.
struct ForeignWeights {
  std::string key;                  ///< path of their dictionary; "" for the file itself
  std::vector<std::string> unused;  ///< the file's other entries, such as "optimizer"
};

/// Makes {"model": weights} of another program's state: tensors by name, alone or in a dictionary
/// such as "state_dict", "model_state_dict", "model" or "state/model".
/// \param key  path of the dictionary; "" to look for it
/// \throws CheckpointError  when there is none, or several, naming those there are
ForeignWeights unwrap_weights(StateDict& state, const std::string& key);

/// Takes off names what PyTorch's wrappers put there, the "module." of DataParallel and the
/// "_orig_mod." of torch.compile, unless this run's names have it too.
class WrapperNames {
 public:
  /// \param own  the model's
  explicit WrapperNames(const std::vector<std::string>& own);

  /// Of a name or of a glob for one.
  std::string without(std::string name) const;

  /// Renames the entries of `model`. \throws CheckpointError  when two get one name
  void take_off(StateDict& model) const;

 private:
  bool takes_module_ = true;
  bool takes_compiled_ = true;
};

/// Finds all of a model in a file that holds more, such as Lightning's: when the names `own` stand
/// there with one more prefix, such as "model.", only these are kept, without it.
/// \param strict  all of `own` must be there; else as many as with any prefix
/// \return the prefix, "" for none
/// \throws CheckpointError  when two prefixes are as good
std::string take_off_prefix(StateDict& model, const std::vector<std::string>& own, bool strict);

}  // namespace rondo
