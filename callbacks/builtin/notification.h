#pragma once

#include <exception>
#include <string>

#include "callbacks/callback.h"
#include "callbacks/listeners.h"
#include "callbacks/not_in_dry_runs.h"

namespace rondo {

/// Tells somebody when a fit is done, when training or a validation failed, and of alerts. Derive
/// from it and say how a message is sent; one that cannot be sent is a warning and never fails the
/// run. Source: Notification of Cerebras' ModelZoo trainer.
class Notification : public Callback, public HearsAlerts, public NotInDryRuns {
 public:
  void on_fit_end(Trainer& trainer, Loop&) override;
  void on_train_exception(Trainer& trainer, std::exception_ptr error) override;
  void on_validate_exception(Trainer& trainer, std::exception_ptr error) override;
  void on_alert(Trainer& trainer, const AlertMessage& alert) override;

 protected:
  /// \param text  some lines: what happened, the run's directory, the user and the machine
  virtual void send(Trainer& trainer, const std::string& text) = 0;

 private:
  void notify(Trainer& trainer, const std::string& what);
};

}  // namespace rondo
