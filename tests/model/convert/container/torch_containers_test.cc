// What is wrong with torch files beyond their pickle, from files made here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "model/convert/container/torch_checkpoint.h"
#include "tests/model/convert/container/zip_writer.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

constexpr char kMagic[] =
    "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
constexpr char kVersion[] = "\x80\x02M\xe9\x03.";

std::string Short(const std::string& text) {
  return absl::StrCat("U", std::string(1, static_cast<char>(text.size())),
                      text);
}

// One tensor under the key "t": sizes [2], stride 1, over storage "0".
struct OneTensor {
  std::string type = "torch\nFloatStorage\n";
  int numel = 2;
  std::string rebuild = "torch._utils\n_rebuild_tensor_v2\n";
  std::string arguments = "K\2\x85K\1\x85\x89N";  // sizes, strides, ...
  std::string view = {};                          // pickled, of legacy files
};

// The storage and the offset after the opening mark are the same for all.
std::string PickleOf(const OneTensor& t) {
  return absl::StrCat("\x80\x02}", Short("t"), "c", t.rebuild, "((",
                      Short("storage"), "c", t.type, Short("0"), Short("cpu"),
                      "K", std::string(1, static_cast<char>(t.numel)), t.view,
                      "tQ", std::string("K\0", 2), t.arguments, "tRs.");
}

std::string TensorError(const absl::StatusOr<NativeCheckpoint>& checkpoint) {
  return std::string(checkpoint.status().message());
}

absl::StatusOr<NativeCheckpoint> Zip(const std::string& pickle,
                                     std::vector<RawZipRecord> more = {}) {
  RawZip zip = {.records = {{.name = "m/data.pkl", .data = pickle},
                            {.name = "m/data/0", .data = "aaaabbbb"}}};
  for (RawZipRecord& record : more) zip.records.push_back(std::move(record));
  return ReadTorchBytes(BytesInMemory(ZipBytes(zip), "z"));
}

absl::StatusOr<NativeCheckpoint> Legacy(
    const std::string& object,
    const std::string& keys =
        "]U\1"
        "0a.",
    const std::string& storages = Little(2, 8) + "aaaabbbb",
    const std::string& system = "}U\x0dlittle_endian\x88s.",
    const std::string& version = kVersion) {
  return ReadTorchBytes(BytesInMemory(
      absl::StrCat(kMagic, version, system, object, keys, storages), "l"));
}

TEST(TorchZip, TensorsAreViewsOfTheirRecords) {
  const auto checkpoint = Zip(PickleOf({}));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->container, "torch zip");
  EXPECT_EQ(checkpoint->path, "z");
  EXPECT_EQ(*ReadTensor(checkpoint->tensors.at("t")), "aaaabbbb");
}

TEST(TorchZip, OldAndNewWaysToRebuildATensorAreKnown) {
  for (const char* rebuild : {"torch._utils\n_rebuild_tensor\n",
                              "torch._utils\n_rebuild_tensor_v2\n"}) {
    const auto checkpoint = Zip(PickleOf({.rebuild = rebuild}));
    ASSERT_TRUE(checkpoint.ok());
    EXPECT_EQ(checkpoint->tensors.size(), 1u);
  }
  // Untyped bytes whose type is an argument.
  const auto typed =
      Zip(PickleOf({.type = "torch.storage\nUntypedStorage\n",
                    .numel = 8,
                    .rebuild = "torch._utils\n_rebuild_tensor_v3\n",
                    .arguments = "K\1\x85K\1\x85\x89N"
                                 "ctorch\nfloat64\n"}));
  ASSERT_TRUE(typed.ok()) << typed.status();
  EXPECT_EQ(typed->tensors.at("t").dtype, DType::kF64);
}

TEST(TorchZip, TypesWithoutADTypeAreInert) {
  const auto checkpoint = Zip(PickleOf({.type = "torch\nShortStorage\n"}));
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_TRUE(checkpoint->tensors.empty());
  EXPECT_EQ(checkpoint->data["t"][kClassKey], "torch.Tensor");
}

TEST(TorchZip, StoragesMustBeThereInTheirSize) {
  EXPECT_THAT(TensorError(Zip(PickleOf({.numel = 3}))),
              HasSubstr("z at t: its storage is said to have 3 elements"));
  EXPECT_THAT(TensorError(Zip(PickleOf({.type = "torch\nNoStorage\n"}))),
              HasSubstr("unknown type torch.NoStorage"));
  EXPECT_THAT(TensorError(Zip(PickleOf({.arguments = "K\2\x85\x89N"}))),
              HasSubstr("z at t"));
  const RawZip bare = {
      .records = {{.name = "m/data.pkl", .data = PickleOf({})}}};
  EXPECT_THAT(TensorError(ReadTorchBytes(BytesInMemory(ZipBytes(bare), "z"))),
              HasSubstr("has no record m/data/0"));
}

TEST(TorchZip, BigEndianFilesAreRefused) {
  const auto with = [](const std::string& order) {
    return Zip(PickleOf({}), {{.name = "m/byteorder", .data = order}});
  };
  EXPECT_TRUE(with("little").ok());
  EXPECT_THAT(TensorError(with("big")), HasSubstr("big-endian"));
}

TEST(TorchZip, ArchivesWithoutOneDataPickleAreNoTorchFiles) {
  const RawZip other = {.records = {{.name = "word/document.xml"}}};
  EXPECT_THAT(TensorError(ReadTorchBytes(BytesInMemory(ZipBytes(other), "z"))),
              HasSubstr("without data.pkl"));
  EXPECT_THAT(TensorError(Zip(PickleOf({}), {{.name = "n/data.pkl"}})),
              HasSubstr("several data.pkl"));
}

TEST(TorchLegacy, TensorsAreViewsOfTheirStorages) {
  const auto checkpoint = Legacy(PickleOf({.view = "N"}));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->container, "torch legacy");
  EXPECT_EQ(*ReadTensor(checkpoint->tensors.at("t")), "aaaabbbb");
}

TEST(TorchLegacy, StoragesMayBeViewsOfOthers) {
  // ("v", 1, 1): one element from the second on.
  const auto checkpoint = Legacy(
      PickleOf({.arguments = "K\1\x85K\1\x85\x89N", .view = "U\1vK\1K\1\x87"}));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(*ReadTensor(checkpoint->tensors.at("t")), "bbbb");
  EXPECT_THAT(TensorError(Legacy(PickleOf({.view = "U\1vK\1K\2\x87"}))),
              HasSubstr("leaves its storage of 2"));
}

TEST(TorchLegacy, ElementsOfAViewStayInsideIt) {
  EXPECT_THAT(TensorError(Legacy(PickleOf({.view = "U\1vK\1K\1\x87"}))),
              HasSubstr("leaves its storage of 1 elements"));
}

TEST(TorchLegacy, HeadMustBeThatOfTorch) {
  EXPECT_THAT(TensorError(Legacy(PickleOf({}),
                                 "]U\1"
                                 "0a.",
                                 "", "}.", "K\1.")),
              HasSubstr("unknown version"));
  EXPECT_THAT(TensorError(Legacy(PickleOf({}),
                                 "]U\1"
                                 "0a.",
                                 "", "}U\x0dlittle_endian\x89s.")),
              HasSubstr("big-endian"));
}

TEST(TorchLegacy, KeysAndStoragesMustAgreeWithTheTensors) {
  EXPECT_THAT(TensorError(Legacy(PickleOf({}), "].")),
              HasSubstr("lacks in the storage keys"));
  EXPECT_THAT(TensorError(Legacy(PickleOf({}),
                                 "]U\1"
                                 "1a.")),
              HasSubstr("the storage keys name 1"));
  EXPECT_THAT(TensorError(Legacy(
                  PickleOf({}),
                  "]U\1"
                  "0aU\1"
                  "0a.",
                  Little(2, 8) + "aaaabbbb" + Little(2, 8) + "aaaabbbb")),
              HasSubstr("twice"));
  EXPECT_THAT(TensorError(Legacy(PickleOf({}), "N.")),
              HasSubstr("no list of storage keys"));
  EXPECT_THAT(TensorError(Legacy(PickleOf({}),
                                 "]U\1"
                                 "0a.",
                                 Little(3, 8) + "aaaabbbbcccc")),
              HasSubstr("said to have 2 elements but has 3"));
  EXPECT_THAT(TensorError(Legacy(PickleOf({}),
                                 "]U\1"
                                 "0a.",
                                 Little(2, 8) + "aaaabbb")),
              HasSubstr("truncated inside storage 0"));
}

TEST(TorchCheckpoint, TensorsOfOneNameMustBeOne) {
  const std::string one = PickleOf({});
  // The same key again, over other elements.
  const std::string entry = one.substr(3, one.size() - 4);
  EXPECT_TRUE(Zip("\x80\x02}" + entry + entry + ".").ok());
  const std::string other = PickleOf({.arguments = "K\1\x85K\1\x85\x89N"});
  EXPECT_THAT(TensorError(Zip("\x80\x02}" + entry +
                              other.substr(3, other.size() - 4) + ".")),
              HasSubstr("z at t: two tensors have this name"));
}

TEST(TorchCheckpoint, FilesOfOtherKindsAreNamed) {
  const auto error = [](const std::string& bytes) {
    return TensorError(ReadTorchBytes(BytesInMemory(bytes, "f")));
  };
  EXPECT_EQ(error(""), "f: is an empty file");
  EXPECT_EQ(error("hello"), "f: is not a torch file");
  EXPECT_THAT(error(std::string(257, 'x') + "ustar" + std::string(300, 'x')),
              HasSubstr("tar file"));
  EXPECT_FALSE(LooksLikeTorchFile(*BytesInMemory("hello", "f")));
  EXPECT_FALSE(LooksLikeTorchFile(*BytesInMemory("", "f")));
  EXPECT_TRUE(LooksLikeTorchFile(*BytesInMemory(kMagic, "f")));
  EXPECT_TRUE(LooksLikeTorchFile(*BytesInMemory("PK\3\4", "f")));
  EXPECT_TRUE(absl::IsNotFound(ReadTorchFile("/nowhere/m.pt").status()));
}

}  // namespace
}  // namespace txl
