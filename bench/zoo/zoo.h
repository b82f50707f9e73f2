#pragma once

#include <vector>

#include "workloads.h"

namespace bench {

/// Steps as they stand in public code, which nobody tuned rondo for. `step_bench --workload=zoo`.
std::vector<Workload> zoo();

/// Its parts, by what they train on.
std::vector<Workload> zoo_of_images();
std::vector<Workload> zoo_of_sequences();
std::vector<Workload> zoo_of_tables();
std::vector<Workload> zoo_of_agents();

/// Its `nn::Transformer` without what the module asks on the host.
Workload unasked_seq2seq();

/// A workload of the zoo: AdamW with a rate of 1e-3, one batch an update.
template <class Net>
Workload in_zoo(const char* name, rondo::Batch (*make_batch)()) {
  Workload w;
  w.name = name;
  w.rule = Rule::AdamW;
  w.lr = 1e-3;
  w.make_network = [] { return std::make_shared<Net>(); };
  w.make_batch = make_batch;
  return w;
}

}  // namespace bench
