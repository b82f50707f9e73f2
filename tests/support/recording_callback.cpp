#include "support/recording_callback.h"

#include <stdexcept>

#include "trainer/trainer.h"

namespace rondo::test {

void RecordingCallback::record(Trainer& trainer, const char* hook) {
  const std::string update = std::to_string(trainer.state().global_step());
  options_.hooks->push_back(options_.with_update ? std::string(hook) + "@" + update
                                                 : std::string(hook));
  if (options_.throws_in == hook) {
    throw std::runtime_error("planted");
  }
}

}  // namespace rondo::test
