#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/state_dict.h"

namespace rondo {

/// Which entries of a state are meant, by globs over their paths, such as "model/layer1.weight". A
/// glob that matches a dictionary or a list means all that is in it; lists count as one entry.
/// "state/model/…" is the same as "model/…".
class EntryFilter {
 public:
  /// \param include  what is meant; none: everything
  /// \param ignore   what is not, all the same
  EntryFilter(std::vector<std::string> include, std::vector<std::string> ignore);

  bool operator()(std::string_view path) const;

  /// The globs that match no entry of this state.
  std::vector<std::string> unmatched(const StateDict& state) const;

 private:
  std::vector<std::string> include_;
  std::vector<std::string> ignore_;
};

/// The entries of `saved` that are meant, and those of `own` that are not: loading the result
/// changes nothing but what is meant. Tensors are shared, not copied.
StateDict take_entries(const StateDict& saved, const StateDict& own, const EntryFilter& is_meant);

/// What becomes of a run that loads `take_entries`, section by section: "model: 4 loaded, 2 as the
/// run made them (head.weight, head.bias); not loaded: rng, optimizer". Long lists are cut.
std::string describe_choice(const StateDict& saved,
                            const StateDict& own,
                            const EntryFilter& is_meant);

/// Renames parameters and buffers wherever a state names them: in `model`, in the state of
/// optimizers and in `sparsity/masks`. Each pair is a glob and what takes its place, in which the
/// n-th `*` stands for the text of the glob's n-th; the first glob that matches a name counts.
/// \return the globs that match no name
/// \throws CheckpointError  when two entries get one name
std::vector<std::string> rename_parameters(
    StateDict& state, const std::vector<std::pair<std::string, std::string>>& globs);

}  // namespace rondo
