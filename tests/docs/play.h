#pragma once

#include <rondo/rondo.h>

/// Stands for the game of docs/embedding.md.
class Game {
 public:
  explicit Game(int frames) : frames_(frames) {}

  bool is_running() const { return frames_ > 0; }

  void update_and_draw() { --frames_; }

 private:
  int frames_;
};

/// The function of that page.
void play(rondo::Trainer& trainer, const rondo::DataLoader& train, Game& game);
