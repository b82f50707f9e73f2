#pragma once

#include "distributed/communicator.h"

namespace rondo {

/// The one rank of a run that has no others: collectives leave everything as it is.
class SingleProcess final : public Communicator {
 public:
  int rank() const override { return 0; }

  int world_size() const override { return 1; }

  const char* transport() const override { return "none"; }

  void all_reduce(at::Tensor&) override {}

  void broadcast(at::Tensor&, int) override {}

  std::vector<std::string> all_gather(const std::string& bytes) override { return {bytes}; }

  void barrier() override {}

  void give_up(const std::string&) noexcept override {}
};

}  // namespace rondo
