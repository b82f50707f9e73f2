#include "checkpoint/checkpoint_tools.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/archives.h"
#include "checkpoint/checkpoint_index.h"
#include "checkpoint/latest_link.h"
#include "support/temp_dir.h"

using namespace rondo;
using rondo::test::bytes_of;
using rondo::test::contains;
using rondo::test::TempDir;

namespace fs = std::filesystem;

TEST_SUITE_BEGIN("checkpoint/checkpoint_tools");

namespace {

FileSystem& files() {
  return *real_file_system();
}

StateDict run_state(float value, int64_t count) {
  return {{"model",
           StateDict{{"w", torch::full({2, 2}, value)},
                     {"h", torch::full({2}, value).to(torch::kHalf)},
                     {"n", torch::tensor(count)}}},
          {"global_step", count},
          {"schedulers", StateList{StateDict{{"updates", count}}}}};
}

}  // namespace

TEST_CASE("a diff names every entry that differs, and by how much") {
  const StateDict a = run_state(1.0F, 3);
  CHECK(state_differences(a, run_state(1.0F, 3)).empty());
  StateDict b = run_state(1.5F, 4);
  b.find("model")->as_dict().erase("h");
  b.set("rng", 1);
  const std::vector<std::string> lines = state_differences(a, b);
  REQUIRE(lines.size() == 6);
  CHECK(contains(lines[0], "model/w"));
  CHECK(contains(lines[0], "0.5"));
  CHECK(contains(lines[1], "model/h"));
  CHECK(contains(lines[2], "model/n"));
  CHECK(contains(lines[3], "global_step"));
  CHECK(contains(lines[4], "schedulers/0/updates"));
  CHECK(contains(lines[5], "rng"));
}

TEST_CASE("an average is the mean of the models, in their own dtypes") {
  const TempDir dir;
  write_checkpoint(files(), dir / "a.pt", run_state(1.0F, 3));
  write_checkpoint(files(), dir / "b.pt", run_state(2.0F, 7));
  write_any(files(), dir / "c.safetensors", run_state(6.0F, 9));
  const StateDict mean = average_models({dir / "a.pt", dir / "b.pt", dir / "c.safetensors"});
  CHECK(mean.names() == std::vector<std::string>{"model"});
  CHECK(equal_bytes(mean.at("model/w").as_tensor(), torch::full({2, 2}, 3.0F)));
  CHECK(equal_bytes(mean.at("model/h").as_tensor(), torch::full({2}, 3.0F).to(torch::kHalf)));
  CHECK(mean.at("model/n").as_int() == 9);
}

TEST_CASE("an average of complex weights keeps their imaginary parts") {
  const TempDir dir;
  const auto write = [&](const char* name, double imaginary) {
    const at::Tensor weight = torch::complex(torch::ones({2}), torch::full({2}, imaginary));
    write_checkpoint(files(), dir / name, {{"model", StateDict{{"w", weight}}}});
  };
  write("a.pt", 1.0);
  write("b.pt", 4.0);
  const StateDict mean = average_models({dir / "a.pt", dir / "b.pt"});
  CHECK(equal_bytes(mean.at("model/w").as_tensor(),
                    torch::complex(torch::ones({2}), torch::full({2}, 2.5))));
}

TEST_CASE("models of other names or shapes have no average") {
  const TempDir dir;
  write_checkpoint(files(), dir / "a.pt", run_state(1.0F, 3));
  StateDict other = run_state(1.0F, 3);
  other.find("model")->as_dict().set("w", torch::zeros({3}));
  write_checkpoint(files(), dir / "b.pt", other);
  try {
    average_models({dir / "a.pt", dir / "b.pt"});
    FAIL("did not throw");
  } catch (const CheckpointError& error) {
    CHECK(contains(error.what(), "b.pt"));
    CHECK(contains(error.what(), "w"));
  }
}

TEST_CASE("the model of a checkpoint goes to safetensors and back") {
  const TempDir dir;
  const StateDict state = run_state(2.5F, 3);
  write_checkpoint(files(), dir / "a.pt", state);
  write_any(files(), dir / "a.safetensors", read_checkpoint(dir / "a.pt"));
  write_any(files(), dir / "b.pt", read_checkpoint(dir / "a.safetensors"));
  const StateDict back = read_checkpoint(dir / "b.pt");
  CHECK(first_difference(back.at("model").as_dict(), state.at("model").as_dict()).empty());
  write_checkpoint(files(), dir / "none.pt", StateDict{{"model", 3}});
  CHECK_THROWS_AS(write_any(files(), dir / "x.safetensors", read_checkpoint(dir / "none.pt")),
                  CheckpointError);
}

TEST_CASE("a copy has the same bytes; a broken file is not copied") {
  const TempDir dir;
  write_checkpoint(files(), dir / "a.pt", run_state(1.0F, 3));
  copy_checkpoint(files(), dir / "a.pt", dir / "b.pt");
  CHECK(bytes_of(dir / "a.pt") == bytes_of(dir / "b.pt"));
  std::string bytes = bytes_of(dir / "a.pt");
  bytes[bytes.size() / 2] ^= 1;
  rondo::test::write_bytes(dir / "a.pt", bytes);
  CHECK_THROWS_AS(copy_checkpoint(files(), dir / "a.pt", dir / "c.pt"), CheckpointError);
  CHECK_FALSE(fs::exists(dir / "c.pt"));
}

TEST_CASE("a copy under the name of another format leaves what is there as it was") {
  const TempDir dir;
  write_checkpoint(files(), dir / "a.pt", run_state(1.0F, 3));
  write_any(files(), dir / "a.safetensors", read_checkpoint(dir / "a.pt"));
  const std::string model = bytes_of(dir / "a.safetensors");
  const std::string run = bytes_of(dir / "a.pt");
  CHECK_THROWS_AS(copy_checkpoint(files(), dir / "a.pt", dir / "a.safetensors"), CheckpointError);
  CHECK_THROWS_AS(copy_checkpoint(files(), dir / "a.safetensors", dir / "a.pt"), CheckpointError);
  CHECK(bytes_of(dir / "a.safetensors") == model);
  CHECK(bytes_of(dir / "a.pt") == run);
}

TEST_CASE("deleting takes a file out of its index, and `latest` leads to what is left") {
  const TempDir dir;
  const CheckpointIndex index(real_file_system(), dir.path(), CheckpointName());
  for (const char* name : {"checkpoint_1.pt", "checkpoint_2.pt"}) {
    write_checkpoint(files(), dir / name, run_state(1.0F, 3));
    CheckpointIndex(index).append(dir / name);
    update_latest_link(files(), dir / name);
  }
  delete_checkpoint(real_file_system(), dir / "checkpoint_2.pt");
  CHECK(index.listed() == std::vector<fs::path>{dir / "checkpoint_1.pt"});
  CHECK(fs::read_symlink(dir / "latest") == "checkpoint_1.pt");
  CHECK_THROWS_AS(delete_checkpoint(real_file_system(), dir / "checkpoint_2.pt"), CheckpointError);
  CHECK_THROWS_AS(delete_checkpoint(real_file_system(), dir / "latest"), CheckpointError);
  CHECK(fs::exists(dir / "checkpoint_1.pt"));
  delete_checkpoint(real_file_system(), dir / "checkpoint_1.pt");
  CHECK_FALSE(fs::is_symlink(dir / "latest"));
}

TEST_CASE("deleting a file makes no link where there was none") {
  const TempDir dir;
  CheckpointIndex index(real_file_system(), dir.path(), CheckpointName());
  for (const char* name : {"checkpoint_1.pt", "checkpoint_2.pt"}) {
    write_checkpoint(files(), dir / name, run_state(1.0F, 3));
    index.append(dir / name);
  }
  delete_checkpoint(real_file_system(), dir / "checkpoint_2.pt");
  CHECK_FALSE(fs::is_symlink(dir / "latest"));
}

TEST_CASE("a manifest says what wrote the file") {
  const TempDir dir;
  write_checkpoint(files(), dir / "a.pt", run_state(1.0F, 3));
  CHECK(contains(read_manifest(dir / "a.pt"), "format = 1"));
  write_checkpoint(files(), dir / "b.pt", StateDict{{"global_step", 7}});
  CHECK(contains(read_manifest(dir / "b.pt"), "step = 7\n"));
  write_checkpoint(files(), dir / "c.pt", StateDict{{"weights", 7}});
  CHECK_FALSE(contains(read_manifest(dir / "c.pt"), "step"));
  CHECK(read_manifest(rondo::test::python_file("python_state_dict.pt")).empty());
}

TEST_SUITE_END();
