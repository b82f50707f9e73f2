// Models that go from rondo to PyTorch in Python, and back.

#include <doctest/doctest.h>
#include <torch/types.h>

#include <string>

#include "checkpoint/checkpoint_file.h"
#include "core/error.h"
#include "support/python.h"
#include "support/temp_dir.h"
#include "support/tiny_run.h"
#include "trainer/trainer.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("trainer/python_model");

namespace {

constexpr const char kAdopt[] = R"(
import sys, torch
saved = torch.load(sys.argv[1] + "/run/checkpoint_4.pt", weights_only=True)
model = torch.nn.Sequential(torch.nn.Linear(4, 3))
model.load_state_dict(saved["model"])
assert saved["global_step"] == 4
torch.save(model.state_dict(), sys.argv[1] + "/python.pt")
inputs = torch.load(sys.argv[1] + "/inputs.pt", weights_only=True)["x"]
torch.save({"logits": model(inputs).detach()}, sys.argv[1] + "/outputs.pt")
)";

/// A run of 4 updates; its model after them.
StateDict train(const TempDir& dir) {
  TrainerOptions options = tiny_options(dir / "run");
  options.loop.max_steps = 4;
  options.checkpoint.steps = 4;
  Trainer trainer(options, quiet_log());
  trainer.fit(tiny_loader("train"));
  return bits_of(trainer).at("model").as_dict();
}

/// A run that begins with a file of Python's.
TrainerOptions beginning_with(const TempDir& dir, const char* name) {
  TrainerOptions options = tiny_options(dir / "second");
  options.checkpoint.load.path = dir / name;
  return options;
}

}  // namespace

TEST_CASE("the model of a checkpoint goes into a Python module, bit for bit") {
  if (skips_without("torch")) {
    return;
  }
  const TempDir dir;
  const StateDict model = train(dir);
  const at::Tensor inputs = torch::arange(8, torch::kFloat32).view({2, 4}) / 8;
  write_checkpoint(*real_file_system(), dir / "inputs.pt", {{"x", inputs}});
  REQUIRE(runs_in_python("torch", dir, kAdopt));
  CHECK(first_difference(read_checkpoint(dir / "python.pt"), model).empty());
  const at::Tensor logits =
      torch::linear(inputs, model.at("0.weight").as_tensor(), model.at("0.bias").as_tensor());
  const at::Tensor found = read_checkpoint(dir / "outputs.pt").at("logits").as_tensor();
  constexpr double kRounding = 1e-6;  // two processes may multiply with two libraries
  CHECK(torch::allclose(found, logits, kRounding, kRounding));
}

TEST_CASE("a state_dict that Python saved begins a run") {
  if (skips_without("torch")) {
    return;
  }
  const TempDir dir;
  REQUIRE(runs_in_python("torch", dir, R"(
import sys, torch
torch.save(torch.nn.Sequential(torch.nn.Linear(4, 3)).state_dict(), sys.argv[1] + "/python.pt")
)"));
  Trainer trainer(beginning_with(dir, "python.pt"), quiet_log());
  trainer.load_checkpoint({});
  const StateDict state = bits_of(trainer);
  CHECK(first_difference(state.at("model").as_dict(), read_checkpoint(dir / "python.pt")).empty());
}

TEST_CASE("a state_dict that does not fit is refused with what is missing, unexpected, misshaped") {
  if (skips_without("torch")) {
    return;
  }
  const TempDir dir;
  REQUIRE(runs_in_python("torch", dir, R"(
import sys, torch
state = torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.Linear(3, 2)).state_dict()
del state["0.bias"]
torch.save(state, sys.argv[1] + "/python.pt")
)"));
  Trainer trainer(beginning_with(dir, "python.pt"), quiet_log());
  const StateDict before = bits_of(trainer);
  std::string report;
  try {
    trainer.load_checkpoint({});
  } catch (const Error&) {
    report = describe(std::current_exception());
  }
  CAPTURE(report);
  for (const char* part : {"0.bias", "1.weight", "1.bias", "0.weight", "[3, 4]", "[3, 5]"}) {
    CAPTURE(part);
    CHECK(report.find(part) != std::string::npos);
  }
  CHECK(first_difference(bits_of(trainer), before).empty());
}

TEST_CASE("whatever Python programs save a model in begins a run with its weights, at update 0") {
  if (skips_without("torch")) {
    return;
  }
  const TempDir dir;
  REQUIRE(runs_in_python("torch", dir, R"(
import argparse, collections, pathlib, sys, torch
to = sys.argv[1] + "/"
model = torch.nn.Sequential(torch.nn.Linear(4, 3))
optimizer = torch.optim.Adam(model.parameters())
model(torch.ones(2, 4)).sum().backward()
optimizer.step()
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
weights = model.state_dict()
class Attributes(dict):
    pass
class Watcher:
    def __init__(self):
        self.best, self.folder = torch.tensor(0.5), pathlib.Path("/tmp")
torch.save(weights, to + "weights.pt")
torch.save({"epoch": 5, "model_state_dict": weights, "loss": 0.25,
            "optimizer_state_dict": optimizer.state_dict()}, to + "tutorial.pt")
prefixed = collections.OrderedDict(("model." + k, v) for k, v in weights.items())
prefixed["metric.total"] = torch.tensor(3)
torch.save({"epoch": 5, "global_step": 100, "pytorch-lightning_version": "2.1.0",
            "state_dict": prefixed,
            "loops": {"fit_loop": {"state_dict": {}, "epoch_progress": {"total": {"ready": 6}}}},
            "callbacks": {"ModelCheckpoint{'monitor': None}": {"best_model_path": "x",
                          "best": torch.tensor(0.5), "folder": pathlib.Path("/tmp")},
                          Watcher: Watcher()},
            "optimizer_states": [optimizer.state_dict()], "lr_schedulers": [scheduler.state_dict()],
            "hparams_name": "kwargs", "hyper_parameters": Attributes(lr=0.1, dtype=torch.float32,
                          args=argparse.Namespace(depth=3, tags={"a"}))}, to + "last.ckpt")
torch.save({"net": {"module." + k: v for k, v in weights.items()}, "acc": 0.5}, to + "parallel.pt")
torch.save(model, to + "module.pt")
torch.save({"epoch": 3, "model": model, "ema": None}, to + "wrapped_module.pt")
torch.jit.script(model).save(to + "script.pt")
torch.jit.trace(model, torch.ones(2, 4)).save(to + "trace.pt")
)"));
  const StateDict weights = read_checkpoint(dir / "weights.pt");
  for (const char* name : {"weights.pt",
                           "tutorial.pt",
                           "last.ckpt",
                           "parallel.pt",
                           "module.pt",
                           "wrapped_module.pt",
                           "script.pt",
                           "trace.pt"}) {
    CAPTURE(name);
    Trainer trainer(beginning_with(dir, name), quiet_log());
    trainer.load_checkpoint({});
    const StateDict state = bits_of(trainer);
    CHECK(first_difference(state.at("model").as_dict(), weights).empty());
    CHECK(trainer.state().global_step() == 0);
  }
}

TEST_SUITE_END();
