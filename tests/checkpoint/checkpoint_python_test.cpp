#include <doctest/doctest.h>
#include <torch/types.h>

#include <filesystem>
#include <string>

#include "checkpoint/archives.h"
#include "checkpoint/safetensors_file.h"
#include "support/python.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("checkpoint/checkpoint_python");

namespace {

/// Everything that Python checks in the file below.
StateDict state_for_python() {
  const at::Tensor base = torch::arange(12, torch::kFloat32);
  StateDict types;
  for (const at::ScalarType type : {torch::kFloat64,
                                    torch::kFloat16,
                                    torch::kBFloat16,
                                    torch::kUInt8,
                                    torch::kInt8,
                                    torch::kInt16,
                                    torch::kInt32,
                                    torch::kInt64,
                                    torch::kBool,
                                    torch::kComplexFloat,
                                    torch::kComplexDouble}) {
    types.set(std::to_string(types.size()), torch::tensor({0, 1, 1}).to(type));
  }
  return {{"model",
           StateDict{{"weight", torch::arange(6, torch::kFloat32).view({2, 3})},
                     {"bias", torch::tensor({0.5F, -0.5F})}}},
          {"shared", StateList{base, base.view({3, 4}).t(), base.slice(0, 2, 4)}},
          {"types", types},
          {"column", base.view({3, 4}).clone().select(1, 2)},
          {"expanded", torch::ones({1}).expand({5})},
          {"empty", torch::empty({0, 3})},
          {"scalar", torch::tensor(2.5F)},
          {"double", 0.1},
          {"integers", StateList{0, 255, 256, -1, int64_t{1} << 40, -(int64_t{1} << 40)}},
          {"text", "grün"},
          {"flags", StateList{true, false, StateValue()}},
          {"nested", StateDict{{"empty", StateDict{}}, {"list", StateList{}}}}};
}

constexpr const char kReadInPython[] = R"(
import sys, zipfile, torch
path = sys.argv[1] + "/rondo.pt"
assert zipfile.ZipFile(path).testzip() is None
for weights_only in (True, False):
    x = torch.load(path, weights_only=weights_only)
    linear = torch.nn.Linear(3, 2)
    linear.load_state_dict(x["model"])
    assert linear.weight.tolist() == [[0, 1, 2], [3, 4, 5]]
    base, transposed, part = x["shared"]
    base.fill_(7)
    assert transposed.shape == (4, 3) and transposed.stride() == (1, 4) and (transposed == 7).all()
    assert part.tolist() == [7, 7]
    dtypes = [torch.float64, torch.float16, torch.bfloat16, torch.uint8, torch.int8, torch.int16,
              torch.int32, torch.int64, torch.bool, torch.complex64, torch.complex128]
    assert [t.dtype for t in x["types"].values()] == dtypes
    assert all(t.tolist() == [0, 1, 1] for t in x["types"].values())
    assert x["column"].tolist() == [2, 6, 10]
    assert x["expanded"].tolist() == [1] * 5
    assert x["empty"].shape == (0, 3)
    assert x["scalar"].shape == () and x["scalar"].item() == 2.5
    assert x["double"].dtype == torch.float64 and x["double"].item() == 0.1
    assert x["integers"] == [0, 255, 256, -1, 2**40, -2**40]
    assert x["text"] == "gr\u00fcn"
    assert x["flags"] == [True, False, None]
    assert x["nested"] == {"empty": {}, "list": []}
)";

constexpr const char kWriteInPython[] = R"(
import sys, torch
x = torch.load(sys.argv[1] + "/rondo.pt", weights_only=True)
model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.5)
model(torch.ones(4, 3)).sum().backward()
optimizer.step()
x["module"] = model.state_dict()
x["optimizer"] = optimizer.state_dict()
x["parameters"] = dict(model.named_parameters())
torch.save(x, sys.argv[1] + "/python.pt")
)";

}  // namespace

TEST_CASE("Python's torch.load reads what rondo saved, weights_only or not") {
  if (skips_without("torch")) {
    return;
  }
  const TempDir dir;
  write_checkpoint(*real_file_system(), dir / "rondo.pt", state_for_python());
  CHECK(runs_in_python("torch", dir, kReadInPython));
}

TEST_CASE("rondo reads what Python's torch.save wrote: modules, optimizers, parameters") {
  if (skips_without("torch")) {
    return;
  }
  const TempDir dir;
  const StateDict state = state_for_python();
  write_checkpoint(*real_file_system(), dir / "rondo.pt", state);
  REQUIRE(runs_in_python("torch", dir, kWriteInPython));
  const StateDict back = read_checkpoint(dir / "python.pt");
  for (const auto& [name, value] : state.items()) {
    if (name != "double") {
      CHECK(first_difference({{name, value}}, {{name, back.at(name)}}) == "");
    }
  }
  CHECK(back.at("double").as_double() == 0.1);
  CHECK(back.at("module").as_dict().size() == 7);
  CHECK(back.at("optimizer/param_groups").as_list()[0].as_dict().at("lr").as_double() == 0.5);
  CHECK(back.at("parameters/0.weight").as_tensor().sizes() == at::IntArrayRef({2, 3}));
  const at::Tensor base = back.at("shared").as_list()[0].as_tensor();
  CHECK(base.storage().is_alias_of(back.at("shared").as_list()[2].as_tensor().storage()));
}

TEST_CASE("safetensors go to Python's own package and back") {
  if (skips_without("safetensors.torch")) {
    return;
  }
  const TempDir dir;
  const StateDict tensors{{"a", torch::arange(6, torch::kFloat32).view({2, 3})},
                          {"b", torch::ones({3}, torch::kBFloat16)},
                          {"empty", torch::empty({0, 3})}};
  write_safetensors(*real_file_system(), dir / "rondo.safetensors", tensors);
  REQUIRE(runs_in_python("safetensors.torch", dir, R"(
import sys, safetensors.torch as st
x = st.load_file(sys.argv[1] + "/rondo.safetensors")
assert x["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
st.save_file(x, sys.argv[1] + "/python.safetensors")
)"));
  const StateDict back = read_safetensors(dir / "python.safetensors");
  for (const auto& [name, value] : tensors.items()) {
    CHECK(equal_bytes(back.at(name).as_tensor(), value.as_tensor()));
  }
}

TEST_SUITE_END();
