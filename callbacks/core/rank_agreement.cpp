#include "callbacks/core/rank_agreement.h"

#include <fmt/format.h>

#include <functional>
#include <string>
#include <string_view>

#include "callbacks/core/backend_callback.h"
#include "callbacks/core/reproducibility_callback.h"
#include "distributed/handshake.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

bool begins_with(const std::string& text, std::string_view with) {
  return text.compare(0, with.size(), with) == 0;
}

/// Names, each with a digest of the bytes.
std::string digests_of(const CapturedState& state, std::string_view prefix) {
  // Each rank has its own share of the sums of an update in there.
  const std::string own = fmt::format("callbacks/{}/", ReproducibilityCallback::kSlot);
  std::string text;
  for (const NamedTensor& tensor : state) {
    if (begins_with(tensor.first, prefix) && !begins_with(tensor.first, own)) {
      const at::Tensor bytes = tensor.second.detach().contiguous().cpu();
      const std::string_view view(static_cast<const char*>(bytes.data_ptr()), bytes.nbytes());
      text += fmt::format("{} {:016x}\n", tensor.first, std::hash<std::string_view>()(view));
    }
  }
  return text;
}

}  // namespace

void require_same_state(Trainer& trainer) {
  const State& state = trainer.state();
  if (state.communicator->world_size() == 1) {
    return;
  }
  const CapturedState all = captured_state(trainer);
  const std::string when = fmt::format("after update {}", state.timestamp.update);
  std::vector<RankFact> facts = {{"the weights " + when, digests_of(all, "model.")}};
  const auto& distributed = trainer.options().distributed;
  if (!distributed || !distributed->shard_optimizer) {
    facts.push_back({"the optimizer's state " + when, digests_of(all, "optimizer")});
  }
  require_same_facts(*state.communicator, facts);
  const std::string difference = difference_of_facts(
      *state.communicator, {{"what callbacks keep " + when, digests_of(all, "callbacks/")}});
  if (!difference.empty()) {
    trainer.log().warning(difference + "; the checkpoint has that of rank 0");
  }
}

}  // namespace rondo
