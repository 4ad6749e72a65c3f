#include "model/convert/container/torch_checkpoint.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "model/convert/container/pickle_value.h"
#include "tests/model/golden_paths.h"

namespace txl {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json DataOf(const std::string& pickle) {
  const auto data = ReadPickleBytes(BytesInMemory(pickle, "p"));
  EXPECT_TRUE(data.ok()) << data.status();
  return data.ok() ? *data : json("error");
}

std::string ErrorOf(const std::string& pickle) {
  const auto data = ReadPickleBytes(BytesInMemory(pickle, "p"));
  return std::string(data.status().message());
}

json DataOfFile(const std::string& path) {
  const auto data = ReadPickleData(TestData() + "/" + path);
  EXPECT_TRUE(data.ok()) << data.status();
  return data.ok() ? *data : json("error");
}

json ParsedFile(const std::string& path) {
  std::ifstream file(TestData() + "/" + path);
  return json::parse(file);
}

// One dictionary, written by Python 3.11 in every protocol.
class Protocol : public testing::TestWithParam<int> {};

TEST_P(Protocol, GivesTheSameData) {
  const json data = DataOfFile(absl::StrCat(
      "model/convert/container/testdata/pickle/protocol", GetParam(), ".pkl"));
  EXPECT_EQ(data["text"], "grün € 𝄞");
  EXPECT_EQ(data["empty"], "");
  EXPECT_EQ(data["bytes"], std::string("\x00\xff", 2));
  EXPECT_EQ(data["ba"], "xy");
  EXPECT_EQ(data["small"], 5);
  EXPECT_EQ(data["two"], 300);
  EXPECT_EQ(data["neg"], -70000);
  EXPECT_EQ(data["big"], int64_t{1} << 40);
  EXPECT_EQ(data["minus"], std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(data["huge"].is_string());
  EXPECT_EQ(data["float"], -1.25);
  EXPECT_EQ(data["yes"], true);
  EXPECT_EQ(data["no"], false);
  EXPECT_TRUE(data["none"].is_null());
  EXPECT_EQ(data["list"], json::parse("[1, [2, 3]]"));
  EXPECT_EQ(data["tuple"], json::array());
  EXPECT_EQ(data["one"], json::parse("[1]"));
  EXPECT_EQ(data["three"], json::parse("[1, 2, 3]"));
  EXPECT_EQ(data["four"], json::parse("[1, 2, 3, 4]"));
  EXPECT_EQ(data["set"], json::parse("[3]"));
  EXPECT_EQ(data["frozen"], json::parse("[4]"));
  EXPECT_EQ(data["nested"]["a"]["b"], "c");
  EXPECT_EQ(data["1"], "int key");
  EXPECT_EQ(data["ordered"], json::parse(R"({"z": 1, "y": 2})"));
  EXPECT_EQ(data["counter"], json::parse(R"({"w": 2})"));
  EXPECT_EQ(data["args"],
            json::parse(R"({"__class__": "argparse.Namespace", "a": 1})"));
  EXPECT_EQ(data["complex"]["__args__"], json::parse("[0.0, 1.0]"));
  EXPECT_EQ(data["long"], std::string(300, 'q'));
}

INSTANTIATE_TEST_SUITE_P(AllProtocols, Protocol, testing::Range(0, 6));

TEST(PickleData, VocabulariesOfEveryContainerRead) {
  const json expected =
      ParsedFile("golden/hf-adaptive/native/vocab.expected.json");
  for (const char* file : {"vocab.bin", "vocab.pkl"}) {
    const json data =
        DataOfFile(absl::StrCat("golden/hf-adaptive/native/", file));
    EXPECT_EQ(data["idx2sym"], expected["idx2sym_as_stored"]) << file;
    EXPECT_EQ(data["sym2idx"].size(), 211u);
    EXPECT_EQ(data["sym2idx"][data["idx2sym"][200].get<std::string>()], 200);
    EXPECT_EQ(data["lower_case"], false);
  }
  const json events = DataOfFile("golden/cpw/native/dictionary.pkl");
  const json names = ParsedFile("golden/cpw/native/dictionary.expected.json");
  ASSERT_EQ(names.size(), 157u);
  for (size_t id = 0; id < names.size(); ++id) {
    EXPECT_EQ(events[0][names[id].get<std::string>()], id);
    EXPECT_EQ(events[1][absl::StrCat(id)], names[id]);
  }
}

TEST(PickleData, PythonTwoObjectsOfBothKindsKeepTheirAttributes) {
  EXPECT_EQ(DataOf("(ivocab\nVocab\n(dS'lower'\nI01\nsb."),
            json::parse(R"({"__class__": "vocab.Vocab", "lower": true})"));
  EXPECT_EQ(DataOf("ccopy_reg\n_reconstructor\n(cvocab\nVocab\n"
                   "c__builtin__\nobject\nNtR(dS'n'\nI7\nsb."),
            json::parse(R"({"__class__": "vocab.Vocab", "n": 7})"));
  EXPECT_EQ(DataOf("ccollections\nOrderedDict\n((l(S'k'\nI1\nlatR."),
            json::parse(R"({"k": 1})"));
}

TEST(PickleData, KeysOfDictionariesAreTexts) {
  EXPECT_EQ(DataOf("}(K\7N\x88NNNK\1U\1a\x86NF1.5\nN]Nu."),
            json::parse(R"x({"7": null, "True": null, "None": null,
                             "(1, a)": null, "1.5": null, "#5": null})x"));
}

TEST(PickleData, InstancesShowAllThatTheyHold) {
  // Arguments, list entries, dictionary entries and a state that is a list.
  EXPECT_EQ(DataOf("cm\nC\nK\1\x85RK\2aU\1kK\3s]K\4ab."),
            json::parse(R"({"__class__": "m.C", "__args__": [1],
                            "__items__": [2], "k": 3, "__state__": [4]})"));
  // The state of a class with slots; an entry cannot hide the class.
  EXPECT_EQ(DataOf("cm\nC\n)\x81N}(U\1sK\1U\x09__class__U\1xu\x86"
                   "b."),
            json::parse(R"({"__class__": "m.C", "s": 1})"));
  // Nobody knows what a call of a tuple would be.
  EXPECT_EQ(DataOf("N\x85)R."), json::parse(R"({"__class__": "?"})"));
}

TEST(PickleData, CallsThatMakeBytesAreDone) {
  EXPECT_EQ(DataOf("c_codecs\nencode\n(V\xe9\nVlatin1\ntR."), "\xe9");
  EXPECT_EQ(DataOf("c__builtin__\nbytes\n)R."), "");
  EXPECT_THAT(ErrorOf("c_codecs\nencode\n(V\\u20ac\nVlatin1\ntR."),
              HasSubstr("Latin-1"));
}

TEST(PickleData, TensorsWithoutStoragesAreInert) {
  EXPECT_EQ(DataOf("ctorch._utils\n_rebuild_tensor_v2\n(NNNNtR."),
            json::parse(R"({"__class__": "torch.Tensor"})"));
}

TEST(PickleData, SharedValuesMayNotExplode) {
  // Each list holds the one before ten times.
  std::string bomb = "]";
  for (int level = 0; level < 12; ++level) {
    const char index = static_cast<char>(level);
    bomb += std::string("q") + index + "0](";
    for (int i = 0; i < 10; ++i) bomb += std::string("h") + index;
    bomb += "e";
  }
  EXPECT_THAT(ErrorOf(bomb + "."), HasSubstr("shares its values so often"));
  // A long text, repeated.
  std::string echo = "(T" + std::string("\0\0\1\0", 4) +
                     std::string(1 << 16, 'x') + "q" + std::string(1, '\0');
  for (int i = 0; i < 100'000; ++i) echo += std::string("h\0", 2);
  EXPECT_THAT(ErrorOf(echo + "t."), HasSubstr("shares its values so often"));
}

TEST(PickleData, WhatContainsItselfIsRefused) {
  EXPECT_THAT(ErrorOf(std::string("]q\0h\0a.", 7)),
              HasSubstr("contains itself"));
  EXPECT_THAT(ErrorOf(std::string("}q\0U\1kh\0s.", 10)),
              HasSubstr("p at k.k.k"));
}

TEST(PickleData, DeepNestingIsRefusedWithoutACrash) {
  const size_t depth = 1'000'000;
  EXPECT_THAT(
      ErrorOf(std::string(depth, ']') + std::string(depth - 1, 'a') + "."),
      HasSubstr("nests deeper"));
  EXPECT_EQ(ErrorOf(std::string(150, ']') + std::string(149, 'a') + "."), "");
}

TEST(PickleData, ErrorsNameTheFile) {
  EXPECT_TRUE(absl::IsNotFound(ReadPickleData("/nowhere/v.pkl").status()));
  EXPECT_THAT(ErrorOf("cos\nsystem\n."), HasSubstr("p: pickle at byte 11"));
}

}  // namespace

}  // namespace txl
