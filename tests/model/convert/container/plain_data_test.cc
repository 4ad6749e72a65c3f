#include "model/convert/container/plain_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "model/convert/container/pickle_machine.h"

namespace txl {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Storages of any key: 8 floats, the same object for the same key.
class FloatStorages : public TorchStorages {
 public:
  absl::StatusOr<std::shared_ptr<const ByteSource>> Open(
      const StorageRef& ref) override {
    auto& source = sources_[ref.key];
    if (source == nullptr) {
      source = BytesInMemory(std::string(32, 'f'), "storage " + ref.key);
    }
    return source;
  }

 private:
  std::map<std::string, std::shared_ptr<const ByteSource>> sources_;
};

absl::StatusOr<PlainData> Convert(const std::string& pickle) {
  const auto file = BytesInMemory(pickle, "p");
  PickleInput input(*file);
  PickleArena arena;
  const auto root = ReadPickle(input, arena);
  if (!root.ok()) return root.status();
  FloatStorages storages;
  return ToPlainData(**root, "p", pickle.size(), &storages);
}

PlainData Plain(const std::string& pickle) {
  const auto plain = Convert(pickle);
  EXPECT_TRUE(plain.ok()) << plain.status();
  return plain.ok() ? *plain : PlainData();
}

std::vector<std::string> Names(const PlainData& plain) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : plain.tensors) names.push_back(name);
  return names;
}

std::string Text(const std::string& text) {
  return absl::StrCat("U", std::string(1, static_cast<char>(text.size())),
                      text);
}

// ('storage', torch.FloatStorage, KEY, 'cpu', 8), offset, sizes, strides, ...
std::string TensorArguments(const std::string& key) {
  return absl::StrCat("((", Text("storage"), "ctorch\nFloatStorage\n",
                      Text(key), Text("cpu"), "K\x08tQ", std::string("K\0", 2),
                      "K\2\x85K\1\x85\x89Nt");
}

std::string Tensor(const std::string& key) {
  return absl::StrCat("ctorch._utils\n_rebuild_tensor_v2\n",
                      TensorArguments(key), "R");
}

std::string Parameter(const std::string& key) {
  return absl::StrCat("ctorch._utils\n_rebuild_parameter\n(", Tensor(key),
                      "\x88NtR");
}

// A dictionary of names and pickled values.
using Entries = std::vector<std::pair<std::string, std::string>>;
std::string Dict(const Entries& entries) {
  std::string pickle = "}(";
  for (const auto& [name, value] : entries) {
    absl::StrAppend(&pickle, Text(name), value);
  }
  return pickle + "u";
}

// As Python 2 pickles an OrderedDict: a call with a list of pairs.
std::string PairList(const Entries& entries) {
  std::string pickle = "ccollections\nOrderedDict\n((";
  for (const auto& [name, value] : entries) {
    absl::StrAppend(&pickle, "(", Text(name), value, "l");
  }
  return pickle + "ltR";
}

std::string Module(const Entries& state) {
  return absl::StrCat("cm\nNet\n)\x81", Dict(state), "b");
}

const std::string kEmpty = "}";

TEST(PlainData, ModuleTensorsHaveTheNamesOfItsStateDict) {
  const std::string child =
      Module({{"_parameters", Dict({{"w", Parameter("1")}, {"none", "N"}})},
              {"_buffers", Dict({{"b", Tensor("2")}})},
              {"_modules", kEmpty},
              {"size", "K\7"}});
  const std::string root =
      Module({{"_parameters", Dict({{"u", Parameter("3")}})},
              {"_buffers", kEmpty},
              {"_modules", Dict({{"child", child}})}});
  const PlainData plain = Plain(root + ".");
  EXPECT_THAT(Names(plain), ElementsAre("child.b", "child.w", "u"));
  EXPECT_EQ(plain.data, json::parse(R"({"__class__": "m.Net", "_modules":
      {"child": {"__class__": "m.Net", "_modules": {}, "size": 7}}})"));
  // Inside a dictionary the place comes first.
  EXPECT_THAT(Names(Plain(Dict({{"net", root}}) + ".")),
              ElementsAre("net.child.b", "net.child.w", "net.u"));
}

TEST(PlainData, ModulesOfPythonTwoHaveListsOfPairs) {
  const PlainData plain =
      Plain(Module({{"_parameters", PairList({{"w", Parameter("1")}})},
                    {"_buffers", PairList({})},
                    {"_modules",
                     PairList({{"0", Module({{"_parameters",
                                              PairList({{"v", Tensor("2")}})},
                                             {"_modules", kEmpty}})}})}}) +
            ".");
  EXPECT_THAT(Names(plain), ElementsAre("0.v", "w"));
}

TEST(PlainData, BuffersThatAreNotSavedAreLeftOut) {
  const std::string unsaved = "c__builtin__\nset\n((U\1xltR";
  const PlainData plain = Plain(
      Module({{"_parameters", kEmpty},
              {"_modules", kEmpty},
              {"_buffers", Dict({{"x", Tensor("1")}, {"y", Tensor("2")}})},
              {"_non_persistent_buffers_set", unsaved}}) +
      ".");
  EXPECT_THAT(Names(plain), ElementsAre("y"));
}

TEST(PlainData, ASetThatManyModulesShareIsPaidForByEach) {
  const auto net = [](const std::string& unsaved) {
    std::string set = "c__builtin__\nset\n((";
    for (int i = 0; i < 20'000; ++i) set += "U\1x";
    Entries children;
    for (int i = 0; i < 2'000; ++i) {
      children.push_back({absl::StrCat(i),
                          Module({{"_parameters", kEmpty},
                                  {"_modules", kEmpty},
                                  {"_buffers", kEmpty},
                                  {"_non_persistent_buffers_set", unsaved}})});
    }
    return absl::StrCat(
        Dict({{"names", set + "ltRp7\n"}, {"net", Dict(children)}}), ".");
  };
  EXPECT_TRUE(Convert(net(kEmpty)).ok());
  EXPECT_THAT(Convert(net("g7\n")).status().message(),
              HasSubstr("shares its values so often"));
}

TEST(PlainData, TensorsAreNamedByTheirPlace) {
  const PlainData plain = Plain(absl::StrCat(
      Dict({{"a", absl::StrCat("(", Tensor("1"), Tensor("2"), "l")},
            {"b.c", Tensor("1")}}),
      "."));
  EXPECT_THAT(Names(plain), ElementsAre("a.0", "a.1", "b.c"));
  EXPECT_EQ(plain.data["a"][1], json::parse(R"({"__tensor__": "a.1"})"));
  EXPECT_TRUE(SameView(plain.tensors.at("a.0"), plain.tensors.at("b.c")));
  EXPECT_FALSE(SameView(plain.tensors.at("a.1"), plain.tensors.at("b.c")));
}

TEST(PlainData, TwoPlacesThatReadTheSameMustBeOneTensor) {
  const Entries clash = {{"a.b", Tensor("1")},
                         {"a", Dict({{"b", Tensor("2")}})}};
  EXPECT_THAT(Convert(Dict(clash) + ".").status().message(),
              HasSubstr("p at a.b: two tensors have this name"));
  const Entries tied = {{"a.b", Tensor("1")},
                        {"a", Dict({{"b", Tensor("1")}})}};
  EXPECT_THAT(Names(Plain(Dict(tied) + ".")), ElementsAre("a.b"));
}

TEST(PlainData, SubclassesOfTensorAreTensors) {
  const std::string made = absl::StrCat(
      "ctorch._tensor\n_rebuild_from_type_v2\n("
      "ctorch._utils\n_rebuild_tensor_v2\ncmine\nTensor\n",
      TensorArguments("1"), "}tR.");
  EXPECT_THAT(
      Names(Plain(Dict({{"t", made.substr(0, made.size() - 1)}}) + ".")),
      ElementsAre("t"));
  const std::string state =
      absl::StrCat("ctorch._utils\n_rebuild_parameter_with_state\n(",
                   Tensor("1"), "\x88N}tR");
  EXPECT_THAT(Names(Plain(Dict({{"t", state}}) + ".")), ElementsAre("t"));
}

TEST(PlainData, BrokenTensorsAreErrorsWithTheirPlace) {
  for (const std::string arguments :
       {"(tR", "(NNNNtR", "(K\1K\1K\1K\1tR", "(U\1xQNNNtR"}) {
    const std::string broken =
        "ctorch._utils\n_rebuild_tensor_v2\n" + arguments;
    const absl::Status status = Convert(Dict({{"t", broken}}) + ".").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(status.message(), HasSubstr("p at t: it"));
  }
}

TEST(PlainData, StatesThatAreNoModuleAreAttributes) {
  const PlainData plain =
      Plain(Module({{"_parameters", kEmpty}, {"n", "K\3"}}) + ".");
  EXPECT_THAT(Names(plain), IsEmpty());
  EXPECT_EQ(plain.data["n"], 3);
  EXPECT_TRUE(plain.data.contains("_parameters"));
}

TEST(PlainData, MetadataOfAStateDictIsLeftOut) {
  EXPECT_EQ(Plain("ccollections\nOrderedDict\n)R}U\x09_metadataK\1sb.").data,
            json::object());
}

TEST(PlainData, ClassOfAModuleMayBeAPersistentId) {
  // What the legacy container writes: ('module', CLASS, FILE, SOURCE).
  const PlainData plain = Plain(absl::StrCat(
      "(", Text("module"), "cmem_transformer\nNet\n", Text("net.py"),
      Text("class Net"), "tQ)\x81", Dict({{"n", "K\1"}}), "b."));
  EXPECT_EQ(plain.data,
            json::parse(R"({"__class__": "mem_transformer.Net", "n": 1})"));
}

TEST(TorchStorage, TypesAreKnownByNameBelowTorch) {
  EXPECT_EQ(StorageTypeNamed("torch.FloatStorage")->dtype, DType::kF32);
  EXPECT_EQ(StorageTypeNamed("torch.cuda.HalfStorage")->dtype, DType::kF16);
  EXPECT_EQ(StorageTypeNamed("torch.LongStorage")->bytes, 8);
  EXPECT_EQ(StorageTypeNamed("torch.CharStorage")->dtype, std::nullopt);
  EXPECT_EQ(StorageTypeNamed("mine.FloatStorage"), nullptr);
  EXPECT_EQ(StorageTypeNamed("torch.NoStorage"), nullptr);
  EXPECT_EQ(DTypeNamed("torch.bfloat16")->dtype, DType::kBF16);
  EXPECT_EQ(DTypeNamed("torch.float8_e4m3fn"), nullptr);
  EXPECT_EQ(DTypeNamed(""), nullptr);
}

TEST(TorchStorage, NumbersOfAnIdAreChecked) {
  const auto error = [](const std::string& rest) {
    const std::string pickle =
        absl::StrCat("((", Text("storage"), "ctorch\nFloatStorage\n", rest,
                     "tQK\1K\2\x85K\1\x85\x89Nt.");
    const std::string whole =
        absl::StrCat("ctorch._utils\n_rebuild_tensor_v2\n",
                     pickle.substr(0, pickle.size() - 1), "R.");
    return std::string(Convert(whole).status().message());
  };
  EXPECT_EQ(error("U\1"
                  "0NK\x08"),
            "");
  EXPECT_EQ(error("K\7NK\x08"), "");  // keys may be numbers
  EXPECT_THAT(error("NNK\x08"), HasSubstr("a key that is not a short text"));
  EXPECT_THAT(error("U\1"
                    "0NI-1\n"),
              HasSubstr("not a count of elements"));
  EXPECT_THAT(error("U\1"
                    "0NI9223372036854775807\n"),
              HasSubstr("more than a file can hold"));
  EXPECT_THAT(error("U\1"
                    "0N"),
              HasSubstr("unknown form"));
  EXPECT_THAT(error("U\1"
                    "0NK\x08K\1"),
              HasSubstr("not three parts"));
  EXPECT_THAT(error("U\1"
                    "0NK\x08U\1vK\x07K\2\x87"),
              HasSubstr("leaves its"));
}

}  // namespace
}  // namespace txl
