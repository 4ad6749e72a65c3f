#include "tests/model/convert/container/checkpoint_check.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "model/checkpoint/safetensors.h"

namespace txl {

std::string TestFile(absl::string_view path) {
  const char* data = std::getenv("TXL_TEST_DATA");
  return absl::StrCat(data != nullptr ? data : "tests", "/", path);
}

void ExpectTensorsOf(const NativeCheckpoint& checkpoint,
                     const std::string& safetensors) {
  const auto expected = SafetensorsReader::Open(safetensors);
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_EQ(checkpoint.tensors.size(), (*expected)->tensors().size());
  for (const auto& [name, info] : (*expected)->tensors()) {
    const auto found = checkpoint.tensors.find(name);
    if (found == checkpoint.tensors.end()) {
      ADD_FAILURE() << "no tensor " << name;
      continue;
    }
    EXPECT_EQ(DTypeName(found->second.dtype), DTypeName(info.dtype)) << name;
    EXPECT_EQ(found->second.shape, info.shape) << name;
    const auto bytes = (*expected)->Bytes(info);
    EXPECT_TRUE(BytesOf(checkpoint, name) ==
                std::string(bytes.begin(), bytes.end()))
        << name << " has other bytes";
  }
}

std::string BytesOf(const NativeCheckpoint& checkpoint,
                    const std::string& tensor) {
  const auto found = checkpoint.tensors.find(tensor);
  if (found == checkpoint.tensors.end()) {
    ADD_FAILURE() << "no tensor " << tensor;
    return "";
  }
  const auto bytes = ReadTensor(found->second);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *bytes : "";
}

std::string ReadAll(const ByteSource& source) {
  std::string bytes(source.size(), '\0');
  const absl::Status read = source.Read(
      0,
      absl::MakeSpan(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()));
  EXPECT_TRUE(read.ok()) << read;
  return bytes;
}

}  // namespace txl
