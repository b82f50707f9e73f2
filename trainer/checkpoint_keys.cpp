#include "trainer/slot_keys.h"

#include <optional>
#include <string>
#include <vector>

namespace rondo {

namespace {

/// `["old.*", "new.*"]`: two globs.
struct RenameOption {
  static std::string name() { return "a list of pairs like [\"old.*\", \"new.*\"]"; }

  static std::optional<std::vector<std::vector<std::string>>> read(const ConfigValue& value,
                                                                   FaultSink& faults) {
    auto pairs = OptionType<std::vector<std::vector<std::string>>>::read(value, faults);
    for (const auto& pair : pairs.value_or(std::vector<std::vector<std::string>>{})) {
      if (pair.size() != 2) {
        return detail::mismatch(value, name(), faults);
      }
    }
    return pairs;
  }

  static ConfigValue write(const std::vector<std::vector<std::string>>& pairs) {
    return OptionType<std::vector<std::vector<std::string>>>::write(pairs);
  }
};

KeyTable<LoadOptions> load_keys() {
  KeyTable<LoadOptions> keys;
  keys.key("path", &LoadOptions::path, "checkpoint file to begin with; empty: begin afresh")
      .key("key",
           &LoadOptions::key,
           "where the weights are in a file of another program; empty: look for them")
      .key("include", &LoadOptions::include, "globs of the entries to load; none: all")
      .key("ignore", &LoadOptions::ignore, "globs of the entries not to load")
      .key_of(
          "rename",
          &LoadOptions::rename,
          RenameOption{},
          "pairs of globs, old and new, by which parameters and buffers in the file are renamed")
      .key("exclude_algorithms",
           &LoadOptions::exclude_algorithms,
           "algorithms that changed the model of the file and that this run does without")
      .key("weights_only",
           &LoadOptions::weights_only,
           "load the model only; training begins at update 0");
  return keys;
}

void add_save_keys(KeyTable<CheckpointOptions>& keys) {
  keys.key("steps",
           &CheckpointOptions::steps,
           at_least(0),
           "how far apart saves are, a fraction being one of the run; 0: none in between")
      .key("save_final_checkpoint",
           &CheckpointOptions::save_final_checkpoint,
           "save the last update of a fit, whatever steps says")
      .key("autoload_last_checkpoint",
           &CheckpointOptions::autoload_last_checkpoint,
           "continue from the newest checkpoint of the run")
      .key("disable_strict_checkpoint_loading",
           &CheckpointOptions::disable_strict_checkpoint_loading,
           "tolerate missing and extra entries of the model")
      .key("save_initial_checkpoint",
           &CheckpointOptions::save_initial_checkpoint,
           "also save before the first batch of the run")
      .key("strict_version",
           &CheckpointOptions::strict_version,
           "refuse files of another major or minor version")
      .key("checkpoint_root",
           &CheckpointOptions::checkpoint_root,
           "directory of the checkpoints; empty: model_dir")
      .key("checkpoint_name",
           &CheckpointOptions::checkpoint_name,
           "name of a checkpoint's file; must contain {step}")
      .key("async",
           &CheckpointOptions::async,
           "write checkpoints in the background while training continues")
      .key("on_error",
           &CheckpointOptions::on_error,
           one_of({"fail", "warn"}),
           "what a save that fails does to the run");
}

void add_remote_keys(KeyTable<CheckpointOptions>& keys) {
  keys.key("remote",
           &CheckpointOptions::remote,
           "address that gets a copy of each checkpoint, such as s3://bucket/run; empty: none")
      .key("upload_retries",
           &CheckpointOptions::upload_retries,
           at_least(0),
           "how often a request of an upload is tried again, with longer and longer waits")
      .key("remote_keep",
           &CheckpointOptions::remote_keep,
           one_of({"same", "all"}),
           "same: what is deleted here is deleted there; all: it stays there")
      .key("upload_timeout",
           &CheckpointOptions::upload_timeout,
           at_least(0),
           "seconds that the end of a fit waits for uploads");
}

void add_content_keys(KeyTable<CheckpointOptions>& keys) {
  keys.key("save_weights_only",
           &CheckpointOptions::save_weights_only,
           "save the model alone, which no run resumes from")
      .key("save_ignore_keys",
           &CheckpointOptions::save_ignore_keys,
           "globs of entries that are not saved, such as optimizer")
      .key("require_finite",
           &CheckpointOptions::require_finite,
           "end the run instead of saving weights that are NaN or infinite")
      .table("load",
             &CheckpointOptions::load,
             load_keys(),
             "what a run without checkpoints begins with");
}

}  // namespace

KeyTable<CheckpointOptions> checkpoint_keys() {
  KeyTable<CheckpointOptions> keys;
  add_save_keys(keys);
  add_remote_keys(keys);
  add_content_keys(keys);
  return keys;
}

}  // namespace rondo
