#include <doctest/doctest.h>
#include <torch/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/checkpoint_file.h"
#include "checkpoint/checkpoint_index.h"
#include "checkpoint/latest_link.h"
#include "checkpoint/safetensors_file.h"
#include "cli/run_here.h"
#include "core/file_system.h"
#include "support/contains.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("cli/checkpoint_command");

namespace {

FileSystem& files() {
  return *real_file_system();
}

/// Writes a checkpoint of a small run. \return its path, for a command line
std::string write(const fs::path& path, float weight, int64_t step = 3) {
  write_checkpoint(
      files(),
      path,
      {{"model", StateDict{{"layer.weight", torch::full({2, 3}, weight)}}}, {"global_step", step}});
  return path.string();
}

/// Flips a bit in the middle of a file.
void damage(const fs::path& path) {
  std::string bytes = files().read(path);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  fs::remove(path);
  write_atomically(files(), path, bytes);
}

Answer checkpoint(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "checkpoint");
  return run_here(std::move(arguments));
}

}  // namespace

TEST_CASE("info lists entries with their kinds, sizes, and who wrote the file") {
  const TempDir dir;
  const std::string path = write(dir / "a.pt", 1.0F);
  const Answer answer = checkpoint({"info", path});
  CHECK(answer.code == 0);
  for (const std::string& part : {path,
                                  "bytes = " + std::to_string(fs::file_size(path)),
                                  std::string("tensor_bytes = 24"),
                                  std::string("format = 1"),
                                  std::string("writer = \"rondo"),
                                  std::string("model/layer.weight: "),
                                  std::string("[2, 3]"),
                                  std::string("global_step: 3\n")}) {
    CAPTURE(part);
    CHECK(contains(answer.out, part));
  }
  const std::string packed = write(dir / "b.pt.zst", 1.0F);
  const std::string other = (dir / "c.safetensors").string();
  REQUIRE(checkpoint({"convert", path, other}).code == 0);
  const Answer both = checkpoint({"info", packed, other});
  CHECK(both.code == 0);
  CHECK(contains(both.out, packed));
  CHECK(contains(both.out, other));
  CHECK(checkpoint({"info", (dir / "absent.pt").string()}).code == 1);
}

TEST_CASE("inspect lists the entries of a file as info does, and nothing else") {
  const TempDir dir;
  const std::string path = write(dir / "a.pt", 1.0F);
  const Answer inspected = run_here({"inspect", path});
  CHECK(inspected.code == 0);
  CHECK(inspected.out.rfind("model/layer.weight: ", 0) == 0);
  CHECK(contains(inspected.out, "[2, 3]"));
  CHECK(contains(checkpoint({"info", path}).out, inspected.out));
}

TEST_CASE("diff answers with 0 for equal files, else with 1 and every entry that differs") {
  const TempDir dir;
  const std::string a = write(dir / "a.pt", 1.0F);
  const Answer equal = checkpoint({"diff", a, write(dir / "b.pt.gz", 1.0F)});
  CHECK(equal.code == 0);
  const Answer differ = checkpoint({"diff", a, write(dir / "c.pt", 1.5F, 4)});
  CHECK(differ.code == 1);
  CHECK(contains(differ.out, "model/layer.weight"));
  CHECK(contains(differ.out, "0.5"));
  CHECK(contains(differ.out, "global_step"));
}

TEST_CASE("verify looks at every file and answers with 1 when one is broken") {
  const TempDir dir;
  const std::string a = write(dir / "a.pt", 1.0F);
  const std::string b = write(dir / "b.pt", 1.0F);
  const std::string c = write(dir / "c.pt.zst", 1.0F);
  CHECK(checkpoint({"verify", a, b, c}).code == 0);
  damage(b);
  const Answer answer = checkpoint({"verify", a, b, c});
  CHECK(answer.code == 1);
  CHECK(contains(answer.out, a + ": whole"));
  CHECK(contains(answer.out, b + ": BROKEN"));
  CHECK(contains(answer.out, c + ": whole"));
}

TEST_CASE("convert goes by the suffixes: safetensors, zstd, gzip, and back") {
  const TempDir dir;
  const std::string a = write(dir / "a.pt", 1.25F);
  const std::string packed = (dir / "a.pt.zst").string();
  const std::string plain = (dir / "plain.pt").string();
  CHECK(checkpoint({"convert", a, packed}).code == 0);
  CHECK(checkpoint({"convert", packed, plain}).code == 0);
  CHECK(files().read(a) == files().read(plain));
  CHECK(files().read(a) != files().read(packed));

  const std::string tensors = (dir / "a.safetensors").string();
  CHECK(checkpoint({"convert", a, tensors}).code == 0);
  CHECK(read_safetensors(tensors).names() == std::vector<std::string>{"layer.weight"});
  CHECK(checkpoint({"convert", tensors, (dir / "back.pt").string()}).code == 0);
  const StateDict back = read_checkpoint(dir / "back.pt");
  CHECK(equal_bytes(back.at("model/layer.weight").as_tensor(), torch::full({2, 3}, 1.25F)));

  CHECK(checkpoint({"convert", a, (dir / "a.tar.gz").string()}).code != 0);
  CHECK_FALSE(fs::exists(dir / "a.tar.gz"));
}

TEST_CASE("copy writes the same bytes, and nothing of a file that is broken") {
  const TempDir dir;
  const std::string a = write(dir / "a.pt", 1.0F);
  CHECK(checkpoint({"copy", a, (dir / "b.pt").string()}).code == 0);
  CHECK(files().read(a) == files().read(dir / "b.pt"));
  damage(a);
  CHECK(checkpoint({"copy", a, (dir / "c.pt").string()}).code == 1);
  CHECK_FALSE(fs::exists(dir / "c.pt"));
}

TEST_CASE("delete takes files out of their run's index, and moves latest to the newest left") {
  const TempDir dir;
  const CheckpointIndex index(real_file_system(), dir.path(), CheckpointName());
  std::vector<std::string> paths;
  for (const int64_t step : {2, 4, 6}) {
    paths.push_back(write(dir.path() / ("checkpoint_" + std::to_string(step) + ".pt"), 1.0F, step));
    CheckpointIndex(index).append(paths.back());
    update_latest_link(files(), paths.back());
  }
  CHECK(checkpoint({"delete", paths[0], paths[2]}).code == 0);
  CHECK(index.listed() == std::vector<fs::path>{paths[1]});
  CHECK(fs::read_symlink(dir / "latest") == "checkpoint_4.pt");
  CHECK_FALSE(fs::exists(paths[0]));
  CHECK(fs::exists(paths[1]));
  CHECK(checkpoint({"delete", paths[0]}).code == 1);
}

TEST_CASE("average writes the mean of the models, and nothing when they do not fit") {
  const TempDir dir;
  const std::string a = write(dir / "a.pt", 1.0F);
  const std::string b = write(dir / "b.pt.gz", 2.0F);
  const std::string mean = (dir / "mean.pt").string();
  CHECK(checkpoint({"average", a, b, "-o", mean}).code == 0);
  const StateDict state = read_checkpoint(mean);
  CHECK(equal_bytes(state.at("model/layer.weight").as_tensor(), torch::full({2, 3}, 1.5F)));
  write_checkpoint(files(), dir / "c.pt", {{"model", StateDict{{"other", torch::ones({2})}}}});
  const std::string none = (dir / "none.pt").string();
  CHECK(checkpoint({"average", a, (dir / "c.pt").string(), "-o", none}).code == 1);
  CHECK_FALSE(fs::exists(none));
}

TEST_CASE("merge writes adapters into the weights of their own file or of a base") {
  const TempDir dir;
  const StateDict adapters{{"layer.lora_A", torch::full({1, 3}, 2.0F)},
                           {"layer.lora_B", torch::full({2, 1}, 3.0F)},
                           {"layer.lora_scale", torch::full({}, 0.5F)}};
  const std::string alone = (dir / "adapters.pt").string();
  write_checkpoint(files(), alone, {{"model", adapters}, {"global_step", 3}});
  const std::string base = write(dir / "base.pt", 1.0F);
  const std::string merged = (dir / "merged.pt").string();
  CHECK(checkpoint({"merge", alone, "-o", merged}).code == 1);
  CHECK(checkpoint({"merge", base, "-o", merged}).code == 1);
  CHECK(checkpoint({"merge", alone, base, base, "-o", merged}).code == 2);
  CHECK_FALSE(fs::exists(merged));
  CHECK(checkpoint({"merge", alone, base, "-o", merged}).code == 0);
  const StateDict model = read_checkpoint(merged).at("model").as_dict();
  CHECK(model.names() == std::vector<std::string>{"layer.weight"});
  CHECK(equal_bytes(model.at("layer.weight").as_tensor(), torch::full({2, 3}, 4.0F)));
}

TEST_CASE("an action that does not exist, or lacks files, is a wrong use") {
  const TempDir dir;
  const std::string a = write(dir / "a.pt", 1.0F);
  CHECK(run_here({"checkpoint"}).code == 2);
  CHECK(checkpoint({"explode", a}).code == 2);
  CHECK(checkpoint({"info"}).code == 2);
  CHECK(checkpoint({"diff", a}).code == 2);
  CHECK(checkpoint({"convert", a}).code == 2);
  CHECK(checkpoint({"copy", a, a, a}).code == 2);
  CHECK(checkpoint({"average", a, a}).code == 2);
}

TEST_SUITE_END();
