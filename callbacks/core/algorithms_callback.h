#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "callbacks/algorithm.h"
#include "callbacks/changes_final_input.h"
#include "callbacks/changes_forward.h"

namespace rondo {

/// Gives events out to the algorithms of a run and to everybody else who listens, and asks
/// algorithms before each step whether they match; fills slot `algorithms`. Order of an event:
/// algorithms, callbacks, loggers; at `Event::Init` loggers, callbacks, algorithms. Algorithms hear
/// an "after" event in reverse, then go through the passes of the run.
class AlgorithmsCallback : public CoreCallback {
 public:
  static constexpr const char* kSlot = "algorithms";

  /// An algorithm that acted at an event, and how often it did there on the host or as step code.
  struct Trace {
    std::string algorithm;  ///< its name in the Trainer
    Event event;
    int64_t times = 0;
  };

  /// \throws UsageError  when two algorithms do what only one may do
  void pre_setup(Trainer& trainer) override;

  /// Asks the algorithms about the coming step. \return what a step key gets for its name: "", or
  /// "/" and the names of those that match, each with a number that says at which events
  std::string match(const Trainer& trainer);

  /// What callbacks change while a forward runs: each forward opens a scope of it.
  ForwardChanges& forward_changes() { return forward_changes_; }

  /// All hooks before a forward have run: callbacks that want the input as it is now get it.
  void show_final_input(Trainer& trainer);

  /// Which algorithms acted where, in the order in which they did first.
  const std::vector<Trace>& traces() const { return traces_; }

  void on_model_init(Trainer& trainer, Model&) override;
  void on_enter_fit(Trainer&, Cleanup& cleanup, const DataLoader&, const Loaders&, Loop&) override;
  void on_fit_start(Trainer& trainer, const DataLoader&, const Loaders&, Loop&) override;
  void on_fit_end(Trainer& trainer, Loop&) override;
  void on_epoch_start(Trainer& trainer, Model&, const DataLoader&, int64_t) override;
  void on_epoch_end(Trainer& trainer, Model&, const DataLoader&, int64_t) override;
  void on_dataloader_start(Trainer& trainer) override;
  void on_dataloader_end(Trainer& trainer, Batch&) override;
  void on_train_batch_start(Trainer& trainer, Model&, const Batch&, int64_t) override;
  void on_train_batch_end(Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) override;
  void on_enter_validate_all(
      Trainer& trainer, Cleanup& cleanup, const Loaders&, Loop&, const Paths&) override;
  void run_validation(Trainer& trainer, std::optional<int64_t>, bool) override;
  void on_enter_validate(Trainer& trainer, Cleanup& cleanup, const DataLoader&, Loop&) override;
  void on_validate_start(Trainer& trainer, Model&, const DataLoader&, Loop&) override;
  void on_validate_end(Trainer& trainer, Model&, Loop&) override;
  void on_validate_batch_start(Trainer& trainer, Model&, const Batch&, int64_t) override;
  void on_validate_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) override;
  void on_predict_start(Trainer& trainer, Model&, const DataLoader&, Loop&) override;
  void on_predict_end(Trainer& trainer, Model&, Loop&) override;
  void on_predict_batch_start(Trainer& trainer, Model&, const Batch&, int64_t) override;
  void on_predict_batch_end(
      Trainer& trainer, Model&, const Outputs&, const Batch&, int64_t) override;
  void on_train_step_start(Trainer& trainer, Model&, const Batch&) override;
  void on_before_forward(Trainer& trainer, Model&, const Batch&, Batch&) override;
  void on_after_network(Trainer& trainer, Model&, Outputs&, const Batch&) override;
  void on_before_loss(Trainer& trainer, Model&, Outputs&, Batch&) override;
  void on_after_loss(Trainer& trainer, Model&, Outputs&, Batch&) override;
  void on_before_backward(Trainer& trainer, Model&, Outputs&) override;
  void on_after_backward(Trainer& trainer, Model&, Outputs&) override;
  void on_before_optimizer_step(Trainer& trainer, Model&, Optimizer& optimizer) override;
  void on_before_load_checkpoint(Trainer& trainer, const std::filesystem::path* path) override;
  void on_load_checkpoint(Trainer& trainer, const StateDict&) override;

  /// The algorithms that changed the model.
  void on_save_checkpoint(Trainer&, StateDict& state) override;

  /// \throws CheckpointError  when the model of the file was changed by one that this run lacks
  void check_checkpoint(Trainer& trainer, const StateDict& state) override;

 private:
  /// What passes through the model.
  enum class Pass { Train, Validate, Predict, Other };

  static std::vector<Event> events_of_step(Pass pass);

  Pass pass(const Trainer& trainer) const;
  std::vector<Algorithm*> ordered(const Trainer& trainer, Event event) const;
  bool is_matched(Event event, const Algorithm* algorithm, const Trainer& trainer) const;
  void run(Trainer& trainer, Event event);
  void run_one(Trainer& trainer, Event event, EventListener& listener, const std::string& name);
  void trace(Trainer& trainer, const std::string& name, Event event);
  /// Events of saves wait for a validation at the same update.
  void run_pending(Trainer& trainer);

  template <class Listener>
  using Named = std::vector<std::pair<Listener*, std::string>>;

  Named<Algorithm> algorithms_;
  Named<EventListener> callbacks_;
  Named<EventListener> loggers_;
  std::map<Event, std::set<const Algorithm*>> matched_;  // of the coming step
  ForwardChanges forward_changes_;
  std::vector<ChangesFinalInput*> final_input_;
  std::vector<Trace> traces_;
  std::vector<Event> pending_;
  Pass pass_ = Pass::Other;  // of the running validation or prediction
  bool enters_fit_ = false;
  bool is_in_all_ = false;  // within all loaders of a validation
  bool is_standalone_ = false;
};

}  // namespace rondo
