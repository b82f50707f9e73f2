#include "zoo.h"

namespace bench {

std::vector<Workload> zoo() {
  std::vector<Workload> all;
  for (const auto& part : {zoo_of_images(), zoo_of_sequences(), zoo_of_tables(), zoo_of_agents()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace bench
