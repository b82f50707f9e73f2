// Files of TorchScript and of C++'s torch::save, whose pickle holds a module instead of a
// dictionary.

#include <doctest/doctest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/script.h>
#include <torch/serialize.h>

#include <string>
#include <vector>

#include "checkpoint/archives.h"
#include "checkpoint/internal/zip_reader.h"
#include "core/random.h"
#include "models/model_state.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("checkpoint/module_file");

namespace {

/// A module in a module, with a parameter, a buffer and a number, and code that is long enough to
/// be compressed in its file.
torch::jit::Module script() {
  torch::jit::Module inner("__torch__.Inner");
  inner.register_parameter("weight", torch::arange(6, torch::kFloat32).view({2, 3}), false);
  inner.register_buffer("mean", torch::tensor({1.5F, 2.5F}));
  inner.register_attribute("momentum", c10::FloatType::get(), 0.1);
  torch::jit::Module outer("__torch__.Outer");
  outer.register_module("inner", inner);
  outer.register_parameter("bias", torch::tensor({0.25F}), false);
  std::string code = "def forward(self, x):\n";
  for (int i = 0; i < 50; ++i) {
    code += "  x = x * 2.0 + self.bias\n";
  }
  outer.define(code + "  return x\n");
  return outer;
}

}  // namespace

TEST_CASE("a TorchScript file is read as its tensors by dotted names; its code is not looked at") {
  const TempDir dir;
  script().save((dir / "script.pt").string());
  const rondo::detail::ZipReader zip(dir / "script.pt");
  const auto* code = zip.find("code/__torch__/Outer.py");
  if (code == nullptr) {
    code = zip.find("code/__torch__.py");
  }
  REQUIRE(code != nullptr);
  CHECK(code->is_compressed);
  const StateDict state = read_checkpoint(dir / "script.pt");
  CHECK(state.size() == 3);
  CHECK(equal_bytes(state.at("inner.weight").as_tensor(),
                    torch::arange(6, torch::kFloat32).view({2, 3})));
  CHECK(equal_bytes(state.at("inner.mean").as_tensor(), torch::tensor({1.5F, 2.5F})));
  CHECK(equal_bytes(state.at("bias").as_tensor(), torch::tensor({0.25F})));
}

TEST_CASE("what C++ saved of a module has the module's names") {
  const TempDir dir;
  torch::nn::Sequential module(torch::nn::Linear(4, 3), torch::nn::BatchNorm1d(3));
  torch::save(module, (dir / "module.pt").string());
  CHECK(first_difference(model_state(*module), read_checkpoint(dir / "module.pt")).empty());
}

TEST_CASE("an OutputArchive that a program filled is read in the same way") {
  const TempDir dir;
  torch::serialize::OutputArchive inner;
  inner.write("w", torch::ones({2}));
  torch::serialize::OutputArchive archive;
  archive.write("net", inner);
  archive.write("step", torch::tensor(7));
  archive.save_to((dir / "archive.pt").string());
  const StateDict state = read_checkpoint(dir / "archive.pt");
  CHECK(state.at("net.w").as_tensor().numel() == 2);
  CHECK(state.at("step").as_int() == 7);
}

TEST_CASE("damage in such a file gives a state or a CheckpointError") {
  const TempDir dir;
  script().save((dir / "script.pt").string());
  const std::string whole = bytes_of(dir / "script.pt");
  KeyedRandom random(1);
  for (int i = 0; i < 200 * campaign_scale(); ++i) {
    std::string bytes = whole;
    for (int change = 0; change < 3; ++change) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    }
    bytes.resize(i % 4 == 0 ? random.below(bytes.size()) : bytes.size());
    write_bytes(dir / "changed.pt", bytes);
    is_refused(dir / "changed.pt");
  }
}

TEST_SUITE_END();
