#pragma once

#include <functional>
#include <string>
#include <vector>

#include "callbacks/event.h"

namespace rondo {

struct State;

/// A change of how a model is trained: it says at which events it acts, and acts there. It is a
/// callback too: hooks, `save_state` and `captured_state` are there for what it keeps. Algorithms
/// are called before callbacks and loggers, but at `Event::Init` after them. docs/algorithms.md
/// shows one of your own.
/// Source: the algorithms of Composer.
class Algorithm : public EventCallback {
 public:
  using Component = Algorithm;

  /// Whether it acts at this event. Host code: for events in the step it is asked before each step,
  /// and a step is recorded for each answer that differs. It must follow from the state, so that a
  /// resumed run answers alike.
  virtual bool match(Event event, const State& state) const = 0;

  /// Acts. \capture safe at events in the step: tensor work only
  virtual void apply(Event event, Trainer& trainer) = 0;

  /// What it does to a run that only one algorithm may do, such as "mixes samples"; "": nothing.
  virtual std::string exclusive() const { return ""; }

  /// True when it changes what the model is made of: a checkpoint names it, and a run without it
  /// refuses that checkpoint.
  virtual bool required_on_load() const { return false; }

  void run_event(Event event, Trainer& trainer) final { apply(event, trainer); }
};

/// Puts algorithms into the order in which they hear an event, and may leave some out or throw.
using AlgorithmPass = std::function<void(std::vector<Algorithm*>& algorithms, Event event)>;

}  // namespace rondo
