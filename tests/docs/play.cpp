// The C++ of docs/embedding.md, as it stands there.

#include "docs/play.h"

#include <rondo/rondo.h>

#include <chrono>

void play(rondo::Trainer& trainer, const rondo::DataLoader& train, Game& game) {
  using namespace std::chrono_literals;
  const auto run = trainer.start_fit(train);
  bool is_training = true;
  while (game.is_running()) {
    const auto frame_ends = std::chrono::steady_clock::now() + 16'600us;
    game.update_and_draw();
    // One instruction may be too many: it gets 300 us.
    const auto left = frame_ends - std::chrono::steady_clock::now() - 300us;
    if (is_training && left > 0us) {
      is_training = run->advance_for(left);
    }
  }
  run->finish_step();  // to the end of the step in progress
  trainer.save_checkpoint();
}
