#pragma once

#include <filesystem>

#include "callbacks/callback.h"
#include "trainer/trainer_options.h"

namespace rondo {

// What it takes to train a run once more beside itself, for what that shows: its memory, its time,
// its step, or what spoiled it.

/// A directory of the system's temporary ones that is gone afterwards.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The run in a directory of its own: no checkpoint is written, and none read that is not named; no
/// logger is told, nobody is notified, it is not started again, and no other rank takes part.
TrainerOptions options_aside(TrainerOptions options, const std::filesystem::path& directory);

/// Puts a callback without hooks in the place of each that `is_left_out`. Of the global ones those
/// are not called that the newest `is_left_out` names.
void leave_out(TrainerOptions& options, bool (*is_left_out)(const Callback&));

/// The same for callbacks that notify somebody.
void leave_out_notifications(TrainerOptions& options);

}  // namespace rondo
