#include "cli/command_line.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <variant>
#include <vector>

#include "support/temp_dir.h"

using rondo::Command;
using rondo::CommandLine;
using rondo::Exit;

namespace {

using Arguments = std::vector<std::string>;

std::variant<CommandLine, Exit> parse(const Arguments& arguments) {
  std::vector<const char*> pointers{"rondo"};
  for (const std::string& argument : arguments) {
    pointers.push_back(argument.c_str());
  }
  return rondo::parse_command_line(static_cast<int>(pointers.size()), pointers.data());
}

/// What a right command line says.
CommandLine read(const Arguments& arguments) {
  const auto parsed = parse(arguments);
  REQUIRE(std::holds_alternative<CommandLine>(parsed));
  return std::get<CommandLine>(parsed);
}

/// How a command line is answered at once.
Exit answer(const Arguments& arguments) {
  const auto parsed = parse(arguments);
  REQUIRE(std::holds_alternative<Exit>(parsed));
  return std::get<Exit>(parsed);
}

std::string joined(const Arguments& arguments) {
  std::string text;
  for (const std::string& argument : arguments) {
    text += " " + argument;
  }
  return text;
}

}  // namespace

TEST_SUITE_BEGIN("cli/command_line");

TEST_CASE("each command is known by its name") {
  CHECK(read({"fit", "a.toml"}).command == Command::Fit);
  CHECK(read({"validate", "a.toml"}).command == Command::Validate);
  CHECK(read({"validate_all", "a.toml"}).command == Command::ValidateAll);
  CHECK(read({"predict", "a.toml"}).command == Command::Predict);
  CHECK(read({"plan", "a.toml"}).command == Command::Plan);
  CHECK(read({"plot-schedule", "a.toml"}).command == Command::PlotSchedule);
  CHECK(read({"verify-resume", "a.toml"}).command == Command::VerifyResume);
  CHECK(read({"checkpoint", "info", "a.pt"}).command == Command::Checkpoint);
  CHECK(read({"debug", "runs/a", "--nan"}).command == Command::Debug);
  CHECK(read({"data", "check", "a.toml"}).command == Command::Data);
  CHECK(read({"describe"}).command == Command::Describe);
  CHECK(read({"export", "a.toml", "-o", "a.ts"}).command == Command::Export);
  CHECK(read({"export-step", "a.toml", "a.step"}).command == Command::ExportStep);
  CHECK(read({"inspect", "runs/a"}).command == Command::Inspect);
  CHECK(read({"version"}).command == Command::Version);
}

TEST_CASE("several jobs of a prediction are ranks that share it") {
  for (const Arguments& jobs : {Arguments{"--jobs", "4"}, Arguments{"--jobs=4"}}) {
    Arguments words = {"predict", "a.toml"};
    words.insert(words.end(), jobs.begin(), jobs.end());
    words.insert(words.end(), {"-o", "b"});
    const CommandLine line = read(words);
    CHECK(line.command == Command::Launch);
    CHECK(line.ranks == 4);
    CHECK(line.files == Arguments{"predict", "a.toml", "-o", "b"});
  }
  CHECK(answer({"launch", "-n", "2", "predict", "a.toml", "--jobs=2"}).code == 2);
  CHECK(read({"predict", "a.toml", "--jobs=1"}).command == Command::Predict);
  CHECK(read({"predict", "a.toml", "--jobs=4", "--dry-run"}).command == Command::Predict);
}

TEST_CASE("options of a run stand anywhere after the command") {
  const Arguments orders[] = {{"fit",
                               "a.toml",
                               "x.y=1",
                               "z=2",
                               "--json",
                               "--dry-run",
                               "-o",
                               "runs/a",
                               "--checkpoint",
                               "none",
                               "--plugin",
                               "p.so",
                               "--plugin",
                               "q.so"},
                              {"fit",
                               "--plugin",
                               "p.so",
                               "--json",
                               "a.toml",
                               "-o",
                               "runs/a",
                               "x.y=1",
                               "--plugin=q.so",
                               "z=2",
                               "--checkpoint=none",
                               "--dry-run"},
                              {"fit",
                               "--model-dir=runs/a",
                               "--plugin",
                               "p.so",
                               "a.toml",
                               "--plugin",
                               "q.so",
                               "x.y=1",
                               "--dry-run",
                               "z=2",
                               "--json",
                               "--checkpoint",
                               "none"}};
  for (const Arguments& arguments : orders) {
    INFO(joined(arguments));
    const CommandLine line = read(arguments);
    CHECK(line.config == "a.toml");
    CHECK(line.overrides == Arguments{"x.y=1", "z=2"});
    CHECK(line.json);
    CHECK(line.dry_run);
    CHECK(line.model_dir == "runs/a");
    CHECK(line.checkpoint == "none");
    CHECK(line.plugins == Arguments{"p.so", "q.so"});
  }
}

TEST_CASE("commands that evaluate can be told to accept weights that nobody trained; fit cannot") {
  for (const char* command : {"validate", "validate_all", "predict"}) {
    CHECK(read({command, "a.toml", "--untrained"}).untrained);
  }

  CHECK(answer({"fit", "a.toml", "--untrained"}).code == 2);
}

TEST_CASE("what is not given is empty") {
  const CommandLine line = read({"fit", "a.toml"});
  CHECK(line.overrides.empty());
  CHECK_FALSE(line.json);
  CHECK_FALSE(line.dry_run);
  CHECK(line.model_dir.empty());
  CHECK(line.checkpoint.empty());
  CHECK_FALSE(line.untrained);
  CHECK(line.plugins.empty());
  CHECK(read({"describe"}).name.empty());
  CHECK(read({"inspect", "runs/a"}).graph.empty());
}

TEST_CASE("an override keeps its value as it was written") {
  const Arguments overrides = {
      "a.b=-3", "a=[1, 2]", "a=x=y", "a=", "a.betas=[0.9,0.95]", "a=\"q\""};
  Arguments arguments = {"fit", "a.toml"};
  arguments.insert(arguments.end(), overrides.begin(), overrides.end());
  CHECK(read(arguments).overrides == overrides);
}

TEST_CASE("a file may be named like a command") {
  CHECK(read({"fit", "version"}).config == "version");
  CHECK(read({"describe", "fit"}).name == "fit");
}

TEST_CASE("describe and inspect take what they show") {
  const CommandLine describe = read({"describe", "AdamW", "--json", "--plugin", "p.so"});
  CHECK(describe.name == "AdamW");
  CHECK(describe.json);
  CHECK(describe.plugins == Arguments{"p.so"});
  const CommandLine inspect = read({"inspect", "runs/a", "--graph", "train"});
  CHECK(inspect.target == "runs/a");
  CHECK(inspect.graph == "train");
  const CommandLine timeline = read({"inspect", "runs/a", "--replays=7", "--timeline"});
  CHECK(timeline.timeline);
  CHECK(timeline.replays == 7);
}

TEST_CASE("an action of checkpoint takes files, and has options of its own") {
  const CommandLine average = read({"checkpoint", "average", "a.pt", "b.pt", "-o", "c.pt"});
  CHECK(average.action == "average");
  CHECK(average.files == Arguments{"a.pt", "b.pt"});
  CHECK(average.output == "c.pt");
  CHECK(answer({"checkpoint", "average", "--help"}).text.find("--output") != std::string::npos);
}

TEST_CASE("help and version are answered with code 0 on standard output") {
  const Arguments asked[] = {{"--help"},
                             {"-h"},
                             {"--version"},
                             {"fit", "--help"},
                             {"validate", "--help"},
                             {"validate_all", "--help"},
                             {"describe", "--help"},
                             {"inspect", "-h"},
                             {"version", "--help"},
                             {"fit", "a.toml", "--json", "--help"}};
  for (const Arguments& arguments : asked) {
    INFO(joined(arguments));
    const Exit exit = answer(arguments);
    CHECK(exit.code == 0);
    CHECK_FALSE(exit.to_stderr);
    CHECK_FALSE(exit.text.empty());
  }
}

TEST_CASE("export takes a run, a file, a format, a batch size and outputs") {
  const CommandLine plain = read({"export", "a.toml", "-o", "a.ts"});
  CHECK(plain.output == "a.ts");
  CHECK(plain.format == "torchscript");
  CHECK(plain.batch_size == 0);
  const CommandLine all = read({"export",
                                "a.toml",
                                "trainer.init.seed=2",
                                "-o",
                                "a.step",
                                "--format=inference-step",
                                "--batch-size=8",
                                "--outputs",
                                "logits"});
  CHECK(all.format == "inference-step");
  CHECK(all.batch_size == 8);
  CHECK(all.outputs == Arguments{"logits"});
  CHECK(all.overrides == Arguments{"trainer.init.seed=2"});
  CHECK(answer({"export", "a.toml"}).code == 2);
  CHECK(answer({"export", "a.toml", "-o", "a.ts", "--batch-size=0"}).code == 2);
}

TEST_CASE("debug takes a run and values, export-step a file to write") {
  const CommandLine debug = read({"debug", "runs/a", "--nan", "trainer.init.seed=2"});
  CHECK(debug.target == "runs/a");
  CHECK(debug.nan);
  CHECK(debug.overrides == Arguments{"trainer.init.seed=2"});
  CHECK(answer({"debug", "runs/a"}).code == 2);
  const CommandLine step = read({"export-step", "a.toml", "a.step", "trainer.init.seed=2"});
  CHECK(step.config == "a.toml");
  CHECK(step.output == "a.step");
  CHECK(step.overrides == Arguments{"trainer.init.seed=2"});
  CHECK(answer({"export-step", "a.toml"}).code == 2);
}

TEST_CASE("plot-schedule takes a run, values, and a picture to write") {
  const CommandLine line = read({"plot-schedule", "a.toml", "trainer.init.seed=2", "--svg=a.svg"});
  CHECK(line.config == "a.toml");
  CHECK(line.svg == "a.svg");
  CHECK(line.overrides == Arguments{"trainer.init.seed=2"});
  CHECK(answer({"plot-schedule"}).code == 2);
}

TEST_CASE("help lists the commands, and a command's help its options and exit codes") {
  const std::string all = answer({"--help"}).text;
  for (const char* command :
       {"fit", "validate", "validate_all", "predict", "describe", "inspect", "version"}) {
    CHECK(all.find(command) != std::string::npos);
  }
  const std::string fit = answer({"fit", "--help"}).text;
  for (const char* part :
       {"--dry-run", "--json", "-o", "--checkpoint", "--plugin", "RUN.toml", "130"}) {
    CHECK(fit.find(part) != std::string::npos);
  }
}

TEST_CASE("wrong use is answered with code 2 on standard error, naming what is wrong") {
  struct Wrong {
    Arguments arguments;
    std::vector<const char*> facts;
  };

  const Wrong cases[] = {
      {{}, {"fit", "--help"}},
      {{"fitt", "a.toml"}, {"\"fitt\"", "did you mean \"fit\"", "validate_all"}},
      {{"valdate"}, {"\"valdate\"", "did you mean \"validate\""}},
      {{""}, {"fit"}},
      {{"--verbose", "fit"}, {"--verbose"}},
      {{"fit"}, {"rondo fit", "RUN.toml is missing"}},
      {{"fit", "a.toml", "b.toml"}, {"key.path=value", "\"b.toml\""}},
      {{"fit", "a.toml", "=3"}, {"\"=3\""}},
      {{"fit", "a.toml", "--jsno"}, {"--jsno", "did you mean \"--json\""}},
      {{"fit", "a.toml", "--graph", "x=1"}, {"--graph"}},
      {{"fit", "a.toml", "--dry-run=maybe"}, {"--dry-run", "maybe"}},
      {{"validate", "a.toml", "-o"}, {"--model-dir"}},
      {{"fit", "a.toml", "-o", "x", "-o", "y"}, {"--model-dir"}},
      {{"inspect"}, {"rondo inspect", "FILE.pt is missing"}},
      {{"inspect", "runs/a", "runs/b"}, {"\"runs/b\""}},
      {{"version", "now"}, {"\"now\""}},
      {{"inspect", "runs/a", "--replays=7"}, {"--replays", "--timeline"}},
      {{"plan", "a.toml", "--checkpoint=a.pt"}, {"rondo plan", "unknown option --checkpoint"}},
      {{"plan", "a.toml", "--checkpoint", "none"}, {"rondo plan", "unknown option --checkpoint"}},
      {{"validate_all", "a.toml", "--checkpoint=none"}, {"--checkpoint", "validates files"}},
      {{"fit", "--jsno"}, {"--jsno", "did you mean \"--json\""}},
      {{"checkpoint"}, {"rondo checkpoint", "action", "average", "verify"}},
      {{"checkpoint", "inof", "a.pt"},
       {"rondo checkpoint", "\"inof\"", "did you mean \"info\"", "average"}},
      {{"checkpoint", "--foo"}, {"rondo checkpoint", "unknown option --foo"}},
      {{"checkpoint", "--foo", "info", "a.pt"}, {"rondo checkpoint", "unknown option --foo"}},
      {{"checkpoint", "info", "--foo", "a.pt"}, {"rondo checkpoint info", "unknown option --foo"}},
      {{"checkpoint", "info"}, {"rondo checkpoint info", "FILE is missing"}},
      {{"checkpoint", "average", "a.pt", "--ouput=b.pt"},
       {"rondo checkpoint average", "--ouput", "did you mean \"--output\""}},
  };
  for (const Wrong& wrong : cases) {
    INFO(joined(wrong.arguments));
    const Exit exit = answer(wrong.arguments);
    CHECK(exit.code == 2);
    CHECK(exit.to_stderr);
    for (const char* fact : wrong.facts) {
      INFO(exit.text);
      CHECK(exit.text.find(fact) != std::string::npos);
    }
  }
}

TEST_CASE("P39: a directory stands for its run.toml, or for its only TOML file") {
  const rondo::test::TempDir dir;
  const auto touch = [&](const char* name) { std::ofstream(dir / name) << "\n"; };
  const std::string path = (dir / "").string();
  CHECK(answer({"fit", path}).code == 2);
  CHECK(answer({"fit", path}).text.find("holds no TOML file") != std::string::npos);
  touch("checkpoints_index.toml");
  touch("gpt.toml");
  CHECK(read({"fit", path}).config == (dir / "gpt.toml").string());
  touch("other.toml");
  const Exit several = answer({"fit", path});
  CHECK(several.code == 2);
  CHECK(several.text.find("gpt.toml") != std::string::npos);
  CHECK(several.text.find("other.toml") != std::string::npos);
  touch("run.toml");
  CHECK(read({"plan", path}).config == (dir / "run.toml").string());
}

TEST_CASE("--params is read where overrides are") {
  for (const char* command : {"fit", "validate", "plan", "plot-schedule"}) {
    CHECK(read({command, "run.toml", "a.b=1", "--params", "{\"a.b\": 2}"}).params ==
          "{\"a.b\": 2}");
  }
}

TEST_SUITE_END();
