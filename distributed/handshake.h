#pragma once

#include <string>
#include <vector>

#include "distributed/communicator.h"

namespace rondo {

/// Something that has to be the same in all ranks, such as the configuration.
struct RankFact {
  std::string name;
  std::string value;  ///< of any number of lines; the first that differs is shown
};

/// Collective: compares the facts of all ranks with those of rank 0.
/// \return the first fact that differs, with both values, and the ranks in which it does; "" when
///         none differs. The same in every rank
std::string difference_of_facts(Communicator& ranks, const std::vector<RankFact>& facts);

/// \throws RankMismatchError  in every rank, with that text
void require_same_facts(Communicator& ranks, const std::vector<RankFact>& facts);

}  // namespace rondo
