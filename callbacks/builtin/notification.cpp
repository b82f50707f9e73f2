#include "callbacks/builtin/notification.h"

#include <fmt/format.h>

#include <cstdlib>

#include "core/error.h"
#include "core/host_name.h"
#include "trainer/trainer.h"

namespace rondo {

namespace {

std::string host() {
  const std::string name = host_name();
  return name.empty() ? "unknown" : name;
}

std::string user() {
  const char* const name = std::getenv("USER");
  return name != nullptr ? name : "unknown";
}

}  // namespace

void Notification::on_fit_end(Trainer& trainer, Loop&) {
  const char* const reason = trainer.stop_reason();
  notify(trainer,
         fmt::format("training reached update {}: {}",
                     trainer.state().global_step(),
                     reason != nullptr ? reason : "done"));
}

void Notification::on_train_exception(Trainer& trainer, std::exception_ptr error) {
  notify(trainer,
         fmt::format(
             "training failed at update {}: {}", trainer.state().global_step(), describe(error)));
}

void Notification::on_validate_exception(Trainer& trainer, std::exception_ptr error) {
  notify(trainer,
         fmt::format(
             "validation failed at update {}: {}", trainer.state().global_step(), describe(error)));
}

void Notification::on_alert(Trainer& trainer, const AlertMessage& alert) {
  notify(trainer, fmt::format("alert at update {}: {}", alert.update, alert.text));
}

void Notification::notify(Trainer& trainer, const std::string& what) {
  const std::string text = fmt::format("{}\nrun: {}\nuser: {}\nhost: {}\n",
                                       what,
                                       trainer.state().artifact_dir.string(),
                                       user(),
                                       host());
  try {
    send(trainer, text);
  } catch (...) {
    trainer.log().warning(
        fmt::format("the notification failed: {}", describe(std::current_exception())));
  }
}

}  // namespace rondo
