#include "trainer/run_aside.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "callbacks/builtin/notification.h"
#include "distributed/single_process.h"

namespace rondo {

namespace {

/// Stands for a callback that is left out; it has no hooks of a user's own, and needs none.
class LeftOut final : public Callback {
 public:
  bool on_custom(Trainer&, std::string_view, HookArgs&) override { return true; }
};

bool is_notification(const Callback& callback) {
  return dynamic_cast<const Notification*>(&callback) != nullptr;
}

}  // namespace

ScratchDirectory::ScratchDirectory()
    : path_(std::filesystem::temp_directory_path() /
            fmt::format("rondo_aside_{}_{}", ::getpid(), static_cast<const void*>(this))) {}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

TrainerOptions options_aside(TrainerOptions options, const std::filesystem::path& directory) {
  options.model_dir = directory;
  options.checkpoint.steps = 0;
  options.checkpoint.save_final_checkpoint = false;
  options.checkpoint.save_initial_checkpoint = false;
  options.checkpoint.checkpoint_root.clear();
  options.checkpoint.remote.clear();
  options.checkpoint.autoload_last_checkpoint = false;
  options.loggers.clear();
  options.logging.log_level = "error";
  options.loop.memory_limit.reset();  // what is tried to stay within it cannot try again
  options.autorestart = {};
  options.communicator = std::make_shared<SingleProcess>();
  leave_out_notifications(options);
  return options;
}

void leave_out_notifications(TrainerOptions& options) {
  leave_out(options, is_notification);
}

void leave_out(TrainerOptions& options, bool (*is_left_out)(const Callback&)) {
  options.leaves_out = is_left_out;
  for (Factory<Callback>& factory : options.callbacks) {
    auto make = [factory, is_left_out]() -> std::unique_ptr<Callback> {
      std::unique_ptr<Callback> callback = factory.make();
      return is_left_out(*callback) ? std::make_unique<LeftOut>() : std::move(callback);
    };
    factory = Factory<Callback>(
                  factory.name(), factory.type(), nullptr, std::move(make), factory.origin())
                  .labelled(factory.label());
  }
}

}  // namespace rondo
