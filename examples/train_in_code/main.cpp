#include <rondo/rondo.h>
#include <iostream>

int main() {
  using namespace rondo;
  LoaderOptions batches;
  batches.batch_size = 64;
  const DataLoader val("val", use<Glyphs>({2000, "val"}), batches);
  batches.shuffle = true;
  const DataLoader train("train", use<Glyphs>({8000, "train"}), batches);

  TrainerOptions run;
  run.model_dir = "runs/glyphs";
  run.seed = 1;
  run.model = use<Mlp>({{784, 256, 10}});
  run.optimizer = use<AdamW>({2e-3});
  run.loop.max_steps = 1000;      // updates
  run.loop.eval_frequency = 250;  // also 0.25 of the run, or "1ep"
  run.checkpoint.steps = 250;
  run.logging.log_steps = 50;
  run.loggers = {use<ProgressLogger>(), use<JsonlLogger>()};

  Trainer trainer(run);
  trainer.fit(train, {val});
  std::cout << trainer.validate_all({val}, {"runs/glyphs/checkpoint_*.pt"});
}
