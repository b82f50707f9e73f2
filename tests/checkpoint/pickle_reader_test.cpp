#include "checkpoint/internal/pickle_reader.h"

#include <doctest/doctest.h>
#include <torch/types.h>

#include <string>
#include <vector>

#include "checkpoint/internal/bytes.h"
#include "checkpoint/pickled_text.h"
#include "core/error.h"

using rondo::test::pickled;

using namespace rondo;
using namespace std::string_literals;

TEST_SUITE_BEGIN("checkpoint/pickle_reader");

namespace {

at::Tensor eight_elements(at::ScalarType type, const std::string& key, int64_t numel) {
  if (key != "0" || numel != 8) {
    throw rondo::detail::Malformed("no such storage");
  }
  return torch::arange(8).to(type);
}

StateDict read(const std::string& body) {
  return rondo::detail::read_pickle("\x80\x02"s + body, {"x.pt", "data.pkl", 1000}, eight_elements);
}

std::string error_of(const std::string& body) {
  try {
    read(body);
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "";
}

bool is_refused(const std::string& body) {
  return !error_of(body).empty();
}

/// The dictionary {"v": value}.
std::string holding(const std::string& value) {
  return "}" + pickled("v") + value + "s.";
}

const std::string kStorage =
    "(" + pickled("storage") + "ctorch\nFloatStorage\n" + pickled("0") + pickled("cpu") + "K\x08tQ";

/// A tensor in that storage; the arguments are pickled.
std::string tensor(const std::string& offset,
                   const std::string& sizes,
                   const std::string& strides) {
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + kStorage + offset + sizes + strides +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}

}  // namespace

TEST_CASE("values can be remembered and referred to") {
  const StateDict state =
      read("}(" + pickled("a") + "]q\x05(K\x01K\x02" + "e" + pickled("b") + "h\x05u.");
  CHECK(state.at("a").as_list().size() == 2);
  CHECK(state.at("b").as_list().size() == 2);
}

TEST_CASE("a list that is filled after it was referred to has its values in both places") {
  const StateDict state =
      read("}(" + pickled("a") + "]q\x01" + pickled("b") + "h\x01K\x07" + "au.");
  CHECK(state.at("a").as_list().at(0).as_int() == 7);
}

TEST_CASE("errors name the path, the record and the place in the file") {
  const std::string error = error_of(holding("cos\nsystem\n"));
  CHECK(error.find("x.pt") != std::string::npos);
  CHECK(error.find("data.pkl") != std::string::npos);
  CHECK(error.find("byte " + std::to_string(1000 + 2 + 1 + 6)) != std::string::npos);
  CHECK(error.find("os.system") != std::string::npos);
}

TEST_CASE("nothing but the parts of a state_dict can be named, and nothing else called") {
  for (const char* name : {"os\nsystem",
                           "posix\nsystem",
                           "builtins\neval",
                           "__builtin__\ngetattr",
                           "torch\nload",
                           "torch._utils\n_rebuild_qtensor",
                           "torch._tensor\n_rebuild_from_type_v2",
                           "torch\nStorage",
                           "collections\ndeque",
                           "\n"}) {
    CHECK(is_refused(holding("c" + std::string(name) + "\n")));
  }
  CHECK(is_refused(holding("ccollections\nOrderedDict\n]R")));          // arguments are no tuple
  CHECK(is_refused(holding("ccollections\nOrderedDict\nK\x01\x85R")));  // an argument too many
  CHECK(is_refused(holding("ctorch\nFloatStorage\n)R")));               // not to be called
  CHECK(is_refused(holding("ctorch\nSize\n)R")));
  CHECK(is_refused(holding("ctorch._utils\n_rebuild_parameter\nK\x01\x85R")));
  CHECK(is_refused(holding("K\x01)R")));
  CHECK(is_refused(holding("ctorch\nSize\n")));  // a name is no value
  CHECK(is_refused(holding(kStorage)));          // nor is a storage
}

TEST_CASE("operations outside of what torch.save writes are refused") {
  for (const char op :
       "012IiLlFDdUTSVBCoP\x81\x82\x83\x84\x8b\x8c\x8d\x8e\x8f\x90\x93\x94\x95\xff") {
    CHECK(is_refused(holding(std::string(1, op) + "\x01\0\0\0\0\0\0\0\0\0"s)));
  }
  CHECK_THROWS_AS(rondo::detail::read_pickle("\x80\x04}.", {}, eight_elements), CheckpointError);
  CHECK_THROWS_AS(rondo::detail::read_pickle("}.", {}, eight_elements), CheckpointError);
}

TEST_CASE("operations without operands, marks or remembered values are refused") {
  for (const char* body : {".",
                           "a.",
                           "K\x01"
                           "a.",
                           "s.",
                           "K\x01s.",
                           "t.",
                           "e.",
                           "u.",
                           "]u.",
                           "R.",
                           ")R.",
                           "b.",
                           ")b.",
                           "Q.",
                           "q\x01.",
                           "h\x01.",
                           "\x85.",
                           "\x87.",
                           "(.",
                           "(}.",
                           "}}.",
                           "}.}",
                           "}(K\x01u.",
                           "}(t.",
                           "]."}) {
    CAPTURE(body);
    CHECK(is_refused(body));
  }
  CHECK(is_refused(")" + ("K\x01"s + "a.")));  // a tuple cannot grow
  CHECK(
      is_refused("}}"
                 "b."));  // only an OrderedDict has attributes
}

TEST_CASE("a pickle that is cut short anywhere is refused") {
  const std::string whole = holding(tensor("K\x01", "K\x02\x85", "K\x03\x85"));
  REQUIRE_FALSE(is_refused(whole));
  for (size_t size = 0; size < whole.size(); ++size) {
    CHECK(is_refused(whole.substr(0, size)));
  }
}

TEST_CASE("names are texts or integers, each once") {
  CHECK(read("}K\x07K\x01s.").at("7").as_int() == 1);
  CHECK(is_refused("}NK\x01s."));
  CHECK(is_refused("}\x88K\x01s."));
  CHECK(is_refused("})K\x01s."));
  CHECK(is_refused("}(" + pickled("a") + "K\x01" + pickled("a") + "K\x02u."));
  CHECK(is_refused("}(" + pickled("7") + "K\x01K\x07K\x02u."));
}

TEST_CASE("texts are UTF-8 and inside the pickle; integers have 64 bits") {
  CHECK(is_refused(holding(pickled("\xc0\x80"))));
  CHECK(is_refused(holding(pickled("\xed\xa0\x80"))));
  CHECK(is_refused(holding(pickled("\xf4\x90\x80\x80"))));
  CHECK(is_refused(holding("X\xff\xff\xff\xff")));
  CHECK(read(holding("\x8a\0"s)).at("v").as_int() == 0);
  CHECK(read(holding("\x8a\x01\xfe")).at("v").as_int() == -2);
  CHECK(is_refused(holding("\x8a\x09" + std::string(9, '\1'))));
}

TEST_CASE("a value inside itself is refused") {
  CHECK(is_refused("}q\x01" + pickled("a") + "h\x01s."));
  CHECK(is_refused("}" + pickled("a") + "]q\x01h\x01" + "as."));
}

TEST_CASE("references that would unfold to more than the memory holds are refused") {
  std::string bomb = "]";
  for (char level = 0; level < 60; ++level) {  // each level is the one before, ten times
    bomb += "q"s + level + "](";
    for (int i = 0; i < 10; ++i) {
      bomb += "h"s + level;
    }
    bomb += "e";
  }
  CHECK(is_refused(holding(bomb)));
  std::string copies = pickled(std::string(1 << 20, 'x')) + "q\x01" + "](";
  for (int i = 0; i < 100000; ++i) {
    copies += "h\x01";
  }
  CHECK(is_refused("}(" + pickled("a") + copies + "eu."));
}

TEST_CASE("very deep values are refused without deep recursion") {
  CHECK(is_refused(holding(")" + std::string(1000000, '\x85'))));
}

TEST_CASE("a tensor lies inside its storage") {
  const auto shape_of = [](const std::string& pickled) {
    return read(holding(pickled)).at("v").as_tensor().sizes().vec();
  };
  CHECK(shape_of(tensor("K\x02", "K\x02K\x02\x86", "K\x04K\x01\x86")) ==
        std::vector<int64_t>{2, 2});
  CHECK(shape_of(tensor("K\x07", ")", ")")).empty());
  CHECK(shape_of(tensor("K\x63", "K\x00\x85"s, "K\x01\x85")) == std::vector<int64_t>{0});
  CHECK(is_refused(holding(tensor("K\x08", ")", ")"))));
  CHECK(is_refused(holding(tensor("J\xff\xff\xff\xff", ")", ")"))));
  CHECK(is_refused(holding(tensor("K\x00"s, "K\x09\x85", "K\x01\x85"))));
  CHECK(is_refused(holding(tensor("K\x01", "K\x02K\x02\x86", "K\x05K\x03\x86"))));
  CHECK(is_refused(holding(tensor("K\x00"s, "J\xff\xff\xff\xff\x85", "K\x01\x85"))));
  CHECK(is_refused(holding(tensor("K\x00"s, "K\x02\x85", "J\xff\xff\xff\xff\x85"))));
  CHECK(is_refused(holding(tensor("K\x00"s, "K\x02\x85", ")"))));
}

TEST_CASE("a tensor's size fits into 64 bits, and its dimensions are at most 64") {
  const std::string huge = "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f";
  CHECK(is_refused(holding(tensor("K\x00"s, huge + "\x85", "K\x00\x85"s))));
  CHECK(is_refused(holding(tensor("K\x00"s, "K\x02\x85", huge + "\x85"))));
  CHECK(is_refused(holding(tensor(huge, "K\x02\x85", "K\x01\x85"))));
  std::string ones = "(";
  for (int i = 0; i < 65; ++i) {
    ones += "K\x01";
  }
  CHECK(is_refused(holding(tensor("K\x00"s, ones + "t", ones + "t"))));
}

TEST_CASE("a tensor shows its storage again and again, but not without measure") {
  const std::string zero = "K\x00"s;
  const StateDict some = read(holding(tensor(zero, "M\xff\xff\x85", zero + "\x85")));
  CHECK(some.at("v").as_tensor().numel() == 0xFFFF);
  CHECK(is_refused(holding(tensor(zero, "J\xff\xff\xff\x7f\x85", zero + "\x85"))));
}

TEST_CASE("a tensor with metadata, such as a conjugate, is refused") {
  const std::string front = "ctorch._utils\n_rebuild_tensor_v2\n(" + kStorage +
                            "K\x00K\x08\x85K\x01\x85\x89"
                            "ccollections\nOrderedDict\n)R"s;
  CHECK_FALSE(is_refused(holding(front + "NtR")));
  CHECK(is_refused(holding(front + "}tR")));
}

TEST_CASE("of another program's file classes and functions are names, objects their attributes") {
  const auto read_inert = [](const std::string& body) {
    return rondo::detail::read_pickle("\x80\x02"s + body,
                                      {"x.pt", "data.pkl", 0},
                                      eight_elements,
                                      rondo::detail::OtherClasses::Inert);
  };
  CHECK(read_inert(holding("ctorch\nfloat32\n")).at("v").as_string() == "torch.float32");
  CHECK(
      read_inert(holding("cos\nsystem\n(" + pickled("touch x") + "tR")).at("v").as_dict().empty());
  const std::string object = "cargparse\nNamespace\n)\x81";
  CHECK(read_inert(holding(object + "}" + pickled("lr") + "K\x01sb")).at("v/lr").as_int() == 1);
  CHECK(read_inert(holding(object + ")b")).at("v").as_dict().empty());
  CHECK(read_inert(holding(object + "(K\x01" + "e")).at("v").as_dict().empty());
  CHECK(read_inert("}cmine\nCallback\nK\x01s.").at("mine.Callback").as_int() == 1);
  CHECK_THROWS_AS(read_inert(holding("ctorch._utils\n_rebuild_qtensor\n")), CheckpointError);
  CHECK_THROWS_AS(read_inert(holding("K\x01)\x81")), CheckpointError);
  CHECK_THROWS_AS(read_inert("c__main__\nNet\n."), CheckpointError);
}

TEST_CASE("attributes that many objects refer to do not fill the memory") {
  std::string many = "](}(";
  for (char name = 'a'; name <= 'z'; ++name) {
    many += pickled(std::string(1, name)) + pickled(std::string(10000, name));
  }
  many += "uq\x01";
  for (int i = 0; i < 20000; ++i) {
    many += "cm\nC\n)\x81h\x01" + "b"s;
  }
  CHECK_THROWS_AS(rondo::detail::read_pickle("\x80\x02"s + holding(many + "e"),
                                             {"x.pt", "data.pkl", 0},
                                             eight_elements,
                                             rondo::detail::OtherClasses::Inert),
                  CheckpointError);
}

TEST_CASE("a module of Python is its tensors by dotted names") {
  const std::string kModule = "ctorch.nn\nLinear\n)\x81";
  const std::string weight = tensor("K\x01", "K\x02\x85", "K\x03\x85");
  const std::string inner = kModule + "}(" + pickled("_parameters") + "}(" + pickled("weight") +
                            weight + pickled("bias") + "Nu" + pickled("_buffers") + "}" +
                            pickled("_modules") + "}" + pickled("in_features") + "K\x02" + "ub";
  const std::string outer = kModule + "}(" + pickled("_parameters") + "}" + pickled("_buffers") +
                            "}" + pickled("mean") + weight + "s" + pickled("_modules") + "}" +
                            pickled("0") + inner + "s" + pickled("training") + "\x88" + "ub";
  const StateDict state = rondo::detail::read_pickle("\x80\x02"s + holding(outer),
                                                     {"x.pt", "data.pkl", 0},
                                                     eight_elements,
                                                     rondo::detail::OtherClasses::Inert);
  CHECK(state.at("v").as_dict().names() == std::vector<std::string>{"mean", "0.weight"});
}

TEST_SUITE_END();
