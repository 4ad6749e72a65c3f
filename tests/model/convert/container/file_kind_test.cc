#include "model/convert/container/file_kind.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/checkpoint/raw_safetensors.h"
#include "tests/model/convert/container/checkpoint_check.h"
#include "tests/model/convert/container/tensor_bundle_writer.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

FileKind Kind(const ByteSource& file) {
  const auto kind = KindOf(file);
  EXPECT_TRUE(kind.ok()) << kind.status();
  return kind.ok() ? *kind : FileKind::kForeign;
}

FileKind KindOfFile(const std::string& path) {
  const auto file = OpenFile(TestFile(path));
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? Kind(**file) : FileKind::kForeign;
}

// What is said of a file with these bytes, which is no checkpoint.
std::string What(const std::string& bytes) {
  const auto file = BytesInMemory(bytes, "file");
  EXPECT_EQ(Kind(*file), FileKind::kForeign);
  return std::string(Foreign(*file));
}

TEST(FileKind, KnowsCheckpointsByContent) {
  EXPECT_EQ(KindOfFile("golden/kimi-char/native/model.pt"), FileKind::kTorch);
  EXPECT_EQ(KindOfFile("golden/kimi-char/native/model_legacy.pt"),
            FileKind::kTorch);
  EXPECT_EQ(KindOfFile("golden/cpw/native/ep_170.pth.tar"), FileKind::kTorch);
  EXPECT_EQ(KindOfFile("golden/hf-adaptive/native/model.safetensors"),
            FileKind::kSafetensors);
  EXPECT_EQ(Kind(*BytesInMemory(SortedTableBytes({{"", "x"}}), "index")),
            FileKind::kBundleIndex);
  EXPECT_EQ(Kind(*BytesInMemory(RawSafetensors("{}", ""), "empty")),
            FileKind::kSafetensors);
}

TEST(FileKind, SaysWhatAForeignFileIs) {
  EXPECT_THAT(What(""), HasSubstr("is empty"));
  EXPECT_THAT(What("\x1f\x8b\x08 and so on"), HasSubstr("gzip"));
  EXPECT_THAT(What("BZh91AY"), HasSubstr("bzip2"));
  EXPECT_THAT(What("\xfd"
                   "7zXZ"),
              HasSubstr("xz"));
  EXPECT_THAT(What("\x28\xb5\x2f\xfd...."), HasSubstr("zstd"));
  EXPECT_THAT(What("\x89HDF\r\n\x1a\n"), HasSubstr("HDF5"));
  EXPECT_THAT(What("GGUF\3"), HasSubstr("GGUF"));
  EXPECT_THAT(What("\x93NUMPY\1"), HasSubstr("npy"));
  EXPECT_THAT(What("version https://git-lfs.github.com/spec/v1\noid sha256:"),
              HasSubstr("Git LFS"));
  EXPECT_THAT(What("<!DOCTYPE html>\n<html>"), HasSubstr("web page"));
  EXPECT_THAT(What("a\tfew\nwords"), HasSubstr("is text"));
  EXPECT_THAT(What(std::string("\0\1\2\3", 4)), HasSubstr("not a checkpoint"));
}

TEST(FileKind, KnowsATarArchiveByItsMagicInTheMiddle) {
  std::string tar(512, '\0');
  tar.replace(0, 8, "model.pt");
  tar.replace(257, 5, "ustar");
  EXPECT_THAT(What(tar), HasSubstr("tar archive"));
}

TEST(FileKind, TellsAPlainPickleFromATorchFile) {
  const auto file = OpenFile(TestFile("golden/cpw/native/dictionary.pkl"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(Kind(**file), FileKind::kForeign);
  EXPECT_EQ(Foreign(**file), "is a plain pickle, no torch file");
}

// The start and the directory's names are those that torch.jit.save writes.
TEST(FileKind, TellsATorchScriptArchive) {
  EXPECT_THAT(What("PK\x03\x04....PK\x01\x02 m/data.pkl PK\x01\x02 "
                   "m/code/__torch__.py PK\x01\x02 m/constants.pkl"),
              HasSubstr("TorchScript"));
}

}  // namespace
}  // namespace txl
