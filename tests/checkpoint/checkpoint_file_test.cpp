#include "checkpoint/checkpoint_file.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "checkpoint/archives.h"
#include "support/temp_dir.h"

using namespace rondo;
using namespace rondo::test;

TEST_SUITE_BEGIN("checkpoint/checkpoint_file");

namespace {

StateDict saved_and_read(const StateDict& state) {
  const TempDir dir;
  write_checkpoint(*real_file_system(), dir / "x.pt", state);
  return read_checkpoint(dir / "x.pt");
}

at::Tensor saved_and_read(const at::Tensor& tensor) {
  return saved_and_read(StateDict{{"t", tensor}}).at("t").as_tensor();
}

uint64_t saved_size(const StateDict& state) {
  const TempDir dir;
  write_checkpoint(*real_file_system(), dir / "x.pt", state);
  return std::filesystem::file_size(dir / "x.pt");
}

/// Whether memory is pages of a file. Source: proc(5), maps.
bool is_of_file(const void* memory, const std::filesystem::path& file) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    uintptr_t begin = 0;
    uintptr_t end = 0;
    char dash = 0;
    words >> std::hex >> begin >> dash >> end;
    const auto address = reinterpret_cast<uintptr_t>(memory);
    if (begin <= address && address < end) {
      return line.find(file.string()) != std::string::npos;
    }
  }
  return false;
}

/// What saving throws, nested messages included.
std::string write_error(const StateDict& state) {
  const TempDir dir;
  try {
    write_checkpoint(*real_file_system(), dir / "x.pt", state);
  } catch (const CheckpointError&) {
    CHECK(std::filesystem::is_empty(dir.path()));
    return describe(std::current_exception());
  }
  return "";
}

}  // namespace

TEST_CASE("values of every kind come back, floats as 0-dim float64 tensors") {
  const StateDict back = saved_and_read(sample_state());
  CHECK(back.names() == sample_state().names());
  CHECK(back.at("lr").is_tensor());
  CHECK(back.at("lr").as_double() == 0.1);
  StateDict expected = sample_state();
  expected.set("lr", torch::tensor(0.1, torch::kFloat64));
  CHECK(first_difference(back, expected) == "");
}

TEST_CASE("integers come back whole at every width") {
  for (const int64_t value : {int64_t{0},
                              int64_t{255},
                              int64_t{256},
                              int64_t{-1},
                              int64_t{65536},
                              int64_t{2147483647},
                              int64_t{2147483648},
                              int64_t{-2147483648},
                              int64_t{-2147483649},
                              std::numeric_limits<int64_t>::max(),
                              std::numeric_limits<int64_t>::min()}) {
    CHECK(saved_and_read(StateDict{{"i", value}}).at("i").as_int() == value);
  }
}

TEST_CASE("floats keep their bits, NaN and -0.0 too") {
  for (const double value :
       {-0.0, std::numeric_limits<double>::infinity(), std::nan("7"), 5e-324}) {
    const StateDict state{{"f", torch::tensor(value, torch::kFloat64)}};
    CHECK(first_difference(saved_and_read(StateDict{{"f", value}}), state) == "");
  }
}

TEST_CASE("names and texts may hold any UTF-8") {
  const StateDict state{{"a/b.c", "grün\n\"'"}, {"", ""}, {"€", std::string("\0x", 2)}};
  CHECK(first_difference(saved_and_read(state), state) == "");
}

TEST_CASE("tensors of every type come back") {
  for (const at::ScalarType type : {torch::kFloat32,
                                    torch::kFloat64,
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
    const at::Tensor tensor = torch::tensor({0, 1, 0, 1, 1, 0}).to(type).view({2, 3});
    CHECK(equal_bytes(saved_and_read(tensor), tensor));
  }
}

TEST_CASE("shapes and strides come back: 0-dim, empty, transposed, expanded") {
  const at::Tensor matrix = torch::arange(6).view({2, 3});
  for (const at::Tensor& tensor :
       {torch::tensor(3.5),
        torch::empty({0}),
        torch::empty({2, 0, 3}),
        torch::empty({0}).as_strided({0, 2}, {7, 5}, 100),
        matrix.t(),
        torch::ones({1}).expand({4}),
        torch::ones({2, 1}).expand({2, 5}).t(),
        torch::ones({2, 3, 4, 4}).to(torch::MemoryFormat::ChannelsLast)}) {
    const at::Tensor back = saved_and_read(tensor);
    CHECK(equal_bytes(back, tensor));
    if (tensor.numel() > 0) {
      CHECK(back.strides() == tensor.strides());
    }
  }
}

TEST_CASE("tensors that share a storage share one in the file and when they are back") {
  const at::Tensor base = torch::arange(1000, torch::kFloat32);
  const StateDict state{{"tied", base},
                        {"again", base},
                        {"view", base.view({10, 100}).t()},
                        {"list", StateList{base.slice(0, 5, 9)}}};
  CHECK(saved_size(state) < saved_size({{"tied", base}}) + 1000);
  const StateDict back = saved_and_read(state);
  CHECK(first_difference(back, state) == "");
  back.at("tied").as_tensor().fill_(-1);
  CHECK(back.at("again").as_tensor().eq(-1).all().item<bool>());
  CHECK(back.at("view").as_tensor().eq(-1).all().item<bool>());
  CHECK(back.at("list").as_list()[0].as_tensor().eq(-1).all().item<bool>());
  CHECK(back.at("view").as_tensor().strides() == at::IntArrayRef({1, 100}));
}

TEST_CASE("parameters that are views of one flat buffer stay views of it") {
  const at::Tensor flat = torch::arange(1000, torch::kFloat32);
  const StateDict back =
      saved_and_read(StateDict{{"a", flat.slice(0, 100, 200)}, {"b", flat.slice(0, 200, 300)}});
  const at::Tensor a = back.at("a").as_tensor();
  CHECK(a.storage().is_alias_of(back.at("b").as_tensor().storage()));
  CHECK(a.storage().nbytes() == 200 * sizeof(float));  // what lies around them is left out
  CHECK(equal_bytes(a, flat.slice(0, 100, 200)));
}

TEST_CASE("a tensor that alone uses a part of a large storage is saved without the rest") {
  const at::Tensor large = torch::arange(1000000, torch::kFloat32).view({1000, 1000});
  CHECK(saved_size({{"row", large[3]}}) < 6000);
  CHECK(saved_size({{"column", large.select(1, 3)}}) < 6000);
  CHECK(equal_bytes(saved_and_read(large[3]), large[3]));
  const at::Tensor column = saved_and_read(large.select(1, 3));
  CHECK(equal_bytes(column, large.select(1, 3)));
  CHECK(column.is_contiguous());
}

TEST_CASE("views of one storage as two types are both right") {
  const at::Tensor numbers = torch::arange(4, torch::kFloat32);
  const StateDict state{{"f", numbers}, {"i", numbers.view(torch::kInt32)}};
  CHECK(first_difference(saved_and_read(state), state) == "");
}

TEST_CASE("parameters, conjugates and negatives are saved as the values that they show") {
  const at::Tensor complex = torch::complex(torch::ones({2}), torch::ones({2}));
  const at::Tensor conjugate = torch::conj(complex);
  CHECK(equal_bytes(saved_and_read(conjugate), conjugate.resolve_conj()));
  CHECK(equal_bytes(saved_and_read(torch::imag(conjugate)), torch::imag(conjugate).contiguous()));
  const at::Tensor parameter = torch::ones({2}, torch::requires_grad());
  CHECK_FALSE(saved_and_read(parameter).requires_grad());
}

TEST_CASE("equal states give equal files") {
  const TempDir dir;
  write_checkpoint(*real_file_system(), dir / "a.pt", sample_state());
  write_checkpoint(*real_file_system(), dir / "another name.pt", sample_state());
  CHECK(bytes_of(dir / "a.pt") == bytes_of(dir / "another name.pt"));
}

TEST_CASE("a save replaces the file; tensors that were read from the old one keep their values") {
  const TempDir dir;
  write_checkpoint(*real_file_system(), dir / "x.pt", {{"t", torch::ones({3})}});
  const at::Tensor old = read_checkpoint(dir / "x.pt").at("t").as_tensor();
  write_checkpoint(*real_file_system(), dir / "x.pt", {{"t", torch::zeros({3})}});
  CHECK(old.eq(1).all().item<bool>());
  CHECK(read_checkpoint(dir / "x.pt").at("t").as_tensor().eq(0).all().item<bool>());
}

TEST_CASE("large tensors are pages of the file: they cost no memory until they are written to") {
  const TempDir dir;
  constexpr int64_t kNumel = int64_t{8} << 20;
  write_checkpoint(*real_file_system(), dir / "x.pt", {{"t", torch::arange(kNumel)}});
  const StateDict state = read_checkpoint(dir / "x.pt");
  const at::Tensor& tensor = state.at("t").as_tensor();
  const auto* const bytes = static_cast<const char*>(tensor.data_ptr());
  CHECK(is_of_file(bytes, dir / "x.pt"));
  CHECK(is_of_file(bytes + tensor.nbytes() - 1, dir / "x.pt"));
  CHECK(equal_bytes(tensor, torch::arange(kNumel)));
  tensor.fill_(7);
  write_checkpoint(*real_file_system(), dir / "x.pt", {{"t", torch::zeros({3})}});
  CHECK(tensor.eq(7).all().item<bool>());
}

TEST_CASE(
    "writing to a large tensor changes nothing in its file, and removing that nothing in it") {
  const TempDir dir;
  const StateDict state{{"t", torch::arange(1'000'000)},
                        {"b", torch::ones({2'000'000}, torch::kBool)}};
  write_checkpoint(*real_file_system(), dir / "x.pt", state);
  const StateDict changed = read_checkpoint(dir / "x.pt");
  changed.at("t").as_tensor().zero_();
  const StateDict kept = read_checkpoint(dir / "x.pt");
  std::filesystem::remove(dir / "x.pt");
  CHECK(first_difference(kept, state).empty());
}

TEST_CASE("damage in a large record is found before anybody sees its pages") {
  const TempDir dir;
  write_checkpoint(*real_file_system(), dir / "x.pt", {{"t", torch::arange(1'000'000)}});
  std::string bytes = bytes_of(dir / "x.pt");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_bytes(dir / "x.pt", bytes);
  CHECK(contains(read_error(dir / "x.pt"), "data/0"));
}

TEST_CASE("what cannot be saved is an error that names the entry, and leaves no file") {
  const auto in_model = [](StateValue value) {
    return StateDict{{"model", StateDict{{"w", std::move(value)}}}};
  };
  CHECK(contains(write_error(in_model(at::Tensor())), "model/w"));
  CHECK(contains(write_error(in_model(torch::ones({2, 2}).to_sparse())), "model/w"));
  CHECK(contains(write_error(in_model(torch::empty({2}, torch::device(torch::kMeta)))), "model/w"));
  CHECK(contains(
      write_error(in_model(torch::quantize_per_tensor(torch::ones({2}), 0.1, 0, torch::kQInt8))),
      "model/w"));
  CHECK(contains(write_error(in_model(StateList{1, "\xff"})), "model/w/1"));
  CHECK(contains(write_error(StateDict{{"same", 1}, {"same", 2}}), "same"));
}

TEST_CASE("a state may be 100 levels deep, and no deeper") {
  const auto nested = [](int levels) {
    StateValue value = 1;
    for (int i = 1; i < levels; ++i) {
      value = i % 2 == 0 ? StateValue(StateDict{{"d", value}}) : StateValue(StateList{value});
    }
    return StateDict{{"d", value}};
  };
  CHECK(first_difference(saved_and_read(nested(100)), nested(100)) == "");
  CHECK(contains(write_error(nested(101)), "100"));
}

TEST_CASE("a directory that is not there is an error naming the path") {
  const TempDir dir;
  CHECK_THROWS_AS(write_checkpoint(*real_file_system(), dir / "no/x.pt", {}), CheckpointError);
  CHECK(contains(read_error(dir / "no.pt"), "no.pt"));
  CHECK(contains(read_error(dir.path()), dir.path().string()));
}

TEST_CASE("reads a Module.state_dict() of Python: OrderedDict with _metadata") {
  const StateDict state = read_checkpoint(python_file("python_state_dict.pt"));
  CHECK(state.names() == std::vector<std::string>{"0.weight",
                                                  "0.bias",
                                                  "1.weight",
                                                  "1.bias",
                                                  "1.running_mean",
                                                  "1.running_var",
                                                  "1.num_batches_tracked"});
  const at::Tensor eighths = torch::arange(16, torch::kFloat32) / 8;
  CHECK(equal_bytes(state.at("0.weight").as_tensor(), eighths.slice(0, 0, 6).view({2, 3})));
  CHECK(equal_bytes(state.at("1.running_var").as_tensor(), eighths.slice(0, 14, 16)));
  CHECK(state.at("1.num_batches_tracked").as_int() == 7);
}

TEST_CASE("reads Python's values: optimizer state, Parameter, Size, tuples, numbers, texts") {
  const StateDict state = read_checkpoint(python_file("python_values.pt"));
  CHECK(state.at("optimizer/state/0/exp_avg").as_tensor().sizes() == at::IntArrayRef({2, 3}));
  CHECK(state.at("optimizer/state/3/step").as_double() == 1);
  const StateDict& group = state.at("optimizer/param_groups").as_list()[0].as_dict();
  CHECK(group.at("lr").as_double() == 0.25);
  CHECK(group.at("betas").as_list()[1].as_double() == 0.999);
  CHECK(group.at("params").as_list().size() == 4);
  CHECK(equal_bytes(state.at("parameters/a").as_tensor(), torch::arange(6, torch::kFloat32)));
  CHECK(state.at("size").as_list()[1].as_int() == 3);
  CHECK(state.at("float").as_double() == 0.1);
  CHECK(state.at("tuple").as_list()[1].as_list()[0].as_int() == 2);
  CHECK(state.at("text").as_string() == "grün");
  CHECK(state.at("none").is_none());
  CHECK_FALSE(state.at("flags").as_list()[1].as_bool());
  CHECK(state.at("7").as_string() == "seven");
  const StateList& integers = state.at("integers").as_list();
  CHECK(integers[6].as_int() == std::numeric_limits<int32_t>::min());
  CHECK(integers[7].as_int() == int64_t{1} << 31);
  CHECK(integers[8].as_int() == std::numeric_limits<int64_t>::max());
  CHECK(integers[9].as_int() == std::numeric_limits<int64_t>::min());
}

TEST_CASE("reads Python's tensors: types, 0-dim, empty, expanded, shared storages") {
  const StateDict state = read_checkpoint(python_file("python_values.pt"));
  for (const auto& [name, value] : state.at("types").as_dict().items()) {
    CHECK(c10::toString(value.as_tensor().scalar_type()) != name);  // they spell types differently
    CHECK(value.as_tensor().to(torch::kFloat64).equal(torch::tensor({0.0, 1.0, 1.0})));
  }
  CHECK(state.at("types").as_dict().size() == 10);
  CHECK(state.at("scalar").as_tensor().dim() == 0);
  CHECK(state.at("empty").as_tensor().sizes() == at::IntArrayRef({0, 3}));
  CHECK(state.at("expanded").as_tensor().sum().item<float>() == 4);
  const StateList& shared = state.at("shared").as_list();
  shared[0].as_tensor().fill_(9);
  CHECK(shared[1].as_tensor().sum().item<float>() == 18);
  CHECK(shared[2].as_tensor().sizes() == at::IntArrayRef({3, 2}));
  CHECK(shared[2].as_tensor().eq(9).all().item<bool>());
}

TEST_CASE("what Python made is read back when rondo has saved it") {
  const StateDict state = read_checkpoint(python_file("python_values.pt"));
  const StateDict back = saved_and_read(state);
  CHECK(first_difference(back.at("optimizer/state").as_dict(),
                         state.at("optimizer/state").as_dict()) == "");
  CHECK(first_difference(back.at("types").as_dict(), state.at("types").as_dict()) == "");
}

TEST_CASE("files that are no checkpoint are told apart") {
  const TempDir dir;
  CHECK(contains(read_error(python_file("python_legacy.pt")), "torch.save"));
  write_bytes(dir / "text.pt", "hello");
  CHECK(contains(read_error(dir / "text.pt"), "not a zip"));
  write_bytes(dir / "empty.pt", "");
  CHECK(contains(read_error(dir / "empty.pt"), "not a zip"));
  write_archive(dir / "other.pt", {{"a", "1"}});
  CHECK(contains(read_error(dir / "other.pt"), "data.pkl"));
}

TEST_CASE("a file of a newer format is refused") {
  const TempDir dir;
  const auto with_manifest = [&dir](const std::string& manifest) {
    write_archive(dir / "x.pt",
                  {{"data.pkl", std::string("\x80\x02}.", 4)}, {"rondo/manifest", manifest}});
    return read_error(dir / "x.pt");
  };
  CHECK(with_manifest("format = 1\nunknown = 3\n") == "");
  CHECK(contains(with_manifest("format = 2\n"), "newer"));
  for (const char* bad : {"", "format = 1", "format = x\n", "format = 0\n", "\nformat = 1\n"}) {
    CHECK(contains(with_manifest(bad), "rondo/manifest"));
  }
}

TEST_SUITE_END();
