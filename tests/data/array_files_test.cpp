#include "data/arrays/array_files.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <string>

#include "checkpoint/checkpoint_file.h"
#include "checkpoint/safetensors_file.h"
#include "core/error.h"
#include "core/registry.h"
#include "data/data_files.h"
#include "data/register.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

namespace {

const at::Tensor kX = torch::arange(12, torch::kDouble).reshape({4, 3});
const at::Tensor kY = torch::tensor({3, 1, 2, 0}, torch::kInt);

/// A folder with the same rows in each kind of file.
struct Files {
  TempDir dir;

  Files() {
    const std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 3), }";
    std::string bytes("\x93NUMPY\1\0v\0", 10);
    bytes += header + std::string(0x76 - header.size() - 1, ' ') + "\n";
    bytes.append(static_cast<const char*>(kX.data_ptr()), 12 * sizeof(double));
    write_file(dir / "x.npy", bytes);
    write_safetensors(*real_file_system(), dir / "a.safetensors", {{"x", kX}, {"y", kY}});
    write_checkpoint(
        *real_file_system(), dir / "b.pt", {{"data", StateDict{{"x", kX}, {"y", kY}}}});
  }

  ArrayFiles::Options options(std::vector<ArraySource> arrays) const {
    ArrayFiles::Options made;
    made.arrays = std::move(arrays);
    made.data_dir = dir.path();
    return made;
  }
};

}  // namespace

TEST_SUITE_BEGIN("data/array_files");

TEST_CASE("rows come from files of each kind, side by side") {
  const Files files;
  const ArrayFiles data(files.options(
      {{"input", "x.npy", ""}, {"label", "a.safetensors", "y"}, {"again", "b.pt", "data/x"}}));
  CHECK(data.size() == 4);
  const Batch batch = data.get_batch({2, 0});
  const at::Tensor expected = torch::tensor({{6.0F, 7.0F, 8.0F}, {0.0F, 1.0F, 2.0F}});
  CHECK(equal_bytes(batch["input"], expected));
  CHECK(equal_bytes(batch["again"], expected));
  CHECK(equal_bytes(batch["label"], torch::tensor({2, 3}, torch::kInt)));
  CHECK(equal_bytes(data.get(1)["label"], torch::tensor(1, torch::kInt)));
}

TEST_CASE("float64 stays where that is asked for, and a range of rows is taken") {
  const Files files;
  auto options = files.options({{"x", "x.npy", ""}});
  options.narrow = false;
  options.first = 1;
  options.count = 2;
  const ArrayFiles data(options);
  CHECK(data.size() == 2);
  CHECK(equal_bytes(data.get_batch({0, 1})["x"], kX.slice(0, 1, 3).contiguous()));
}

TEST_CASE("entries that are not there and rows that do not fit are errors that say what is") {
  const Files files;
  const auto error = [&](std::vector<ArraySource> arrays) {
    const auto options = files.options(std::move(arrays));
    CHECK_THROWS_AS(ArrayFiles{options}, DataError);
    return message_of([&] { ArrayFiles{options}; });
  };
  CHECK(contains(error({{"x", "a.safetensors", "z"}}), "there is no array \"z\""));
  CHECK(contains(error({{"x", "b.pt", "data/xx"}}), "data/x"));
  CHECK(contains(error({{"x", "b.pt", ""}}), "data/y"));
  CHECK(contains(error({{"x", "missing.npy", ""}}), "missing.npy"));
  write_checkpoint(*real_file_system(), files.dir / "short.pt", {{"y", kY.slice(0, 0, 3)}});
  CHECK(contains(error({{"x", "x.npy", ""}, {"y", "short.pt", ""}}), "has 3 rows, \"x\" has 4"));
  write_checkpoint(*real_file_system(), files.dir / "one.pt", {{"y", torch::tensor(1)}});
  CHECK(contains(error({{"x", "one.pt", ""}}), "single number"));
}

TEST_CASE("a config names a file for each tensor, and an entry where a file has several") {
  const Files files;
  Registry<DataSource> registry("dataset");
  register_builtin_datasets(registry);
  ConfigTable source;
  source.set("file", ConfigValue(std::string("b.pt")));
  source.set("entry", ConfigValue(std::string("data/y")));
  ConfigTable arrays;
  arrays.set("x", ConfigValue(std::string("x.npy")));
  arrays.set("label", ConfigValue(source));
  ConfigTable keys;
  keys.set("arrays", ConfigValue(arrays));
  keys.set("data_dir", ConfigValue(files.dir.path().string()));
  std::vector<Fault> faults;
  FaultSink sink("", faults);
  const auto factory = registry.read_named("ArrayFiles", {}, keys, sink);
  REQUIRE(faults.empty());
  const auto made = factory.make();
  CHECK(dynamic_cast<const Dataset&>(*made).get(3)["label"].item<int>() == 0);
  CHECK(registry.write(factory).to_text().find("entry = \"data/y\"") != std::string::npos);
  arrays.set("label", ConfigValue(int64_t{3}));
  keys.set("arrays", ConfigValue(arrays));
  registry.read_named("ArrayFiles", {}, keys, sink);
  CHECK(faults.size() == 1);
}

TEST_SUITE_END();
