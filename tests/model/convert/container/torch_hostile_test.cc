// Damaged and malicious torch files: refused in one line that says why, without
// running, writing or allocating what they ask for.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "model/convert/container/torch_checkpoint.h"
#include "tests/model/convert/container/allocation_watch.h"
#include "tests/model/golden_paths.h"

namespace txl {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// What the error of each file must speak of.
const std::map<std::string, std::string> kErrors = {
    {"zip_reduce_os_system_toplevel.pt", "forbidden global posix.system"},
    {"zip_reduce_os_system_in_value.pt", "forbidden global posix.system"},
    {"legacy_reduce_os_system.pt", "forbidden global os.system"},
    {"zip_reduce_eval_extra_key.pt", "forbidden global __builtin__.eval"},
    {"legacy_reduce_in_magic.pt", "is not a torch file"},
    {"zip_truncated.pt", "the archive is truncated"},
    {"zip_bad_crc.pt", "record archive/data/2"},
    {"zip_huge_declared_record.pt", "beyond the file"},
    {"zip_storage_numel_huge.pt", "1099511627776 elements"},
    {"zip_tensor_out_of_bounds.pt", "leaves its storage"},
    {"zip_negative_offset.pt", "negative offset"},
    {"zip_negative_stride.pt", "negative stride"},
    {"zip_path_traversal.pt", "unsafe name"},
    {"zip_deflate_bomb.pt", "is compressed"},
    {"pickle_deep_nesting.pt", "nests deeper"},
    {"pickle_memo_bomb.pt", "shares its values so often"},
    {"pickle_memo_index_huge.pt", "memo index 4294967295"},
    {"pickle_string_length_huge.pt", "truncated"},
    {"pickle_stack_underflow.pt", "malformed"},
    {"legacy_bad_storage_key.pt", "storage keys"},
    {"legacy_truncated_storage.pt", "truncated inside storage"},
    {"zero_length.pt", "empty file"},
};

// Reads the table of contents and every tensor.
absl::Status ReadAll(const std::string& path) {
  const absl::StatusOr<NativeCheckpoint> checkpoint = ReadTorchFile(path);
  if (!checkpoint.ok()) return checkpoint.status();
  for (const auto& [name, tensor] : checkpoint->tensors) {
    const absl::StatusOr<std::string> bytes = ReadTensor(tensor);
    if (!bytes.ok()) return bytes.status();
  }
  return absl::OkStatus();
}

json HostileTorchFiles() {
  std::ifstream file(TestData() + "/hostile/hostile.json");
  const json listed = json::parse(file);
  json files = json::array();
  for (const json& entry : listed["files"]) {
    if (entry["kind"] == "torch") files.push_back(entry);
  }
  return files;
}

TEST(TorchHostile, EveryFileIsRefusedWithItsReason) {
  size_t refused = 0;
  for (const json& entry : HostileTorchFiles()) {
    const std::string name = entry["path"];
    const std::string path = TestData() + "/hostile/" + name;
    const absl::Status status = ReadAll(path);
    if (entry["expect"] == "accept") {
      EXPECT_TRUE(status.ok()) << status;
      continue;
    }
    ++refused;
    ASSERT_TRUE(kErrors.contains(name)) << name;
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr(kErrors.at(name)));
    EXPECT_THAT(status.message(), HasSubstr(path));
    EXPECT_EQ(status.message().find('\n'), absl::string_view::npos);
    EXPECT_LT(status.message().size(), 1000u);
  }
  EXPECT_EQ(refused, kErrors.size());
}

TEST(TorchHostile, NothingIsExecutedOrWritten) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "torch_hostile";
  std::filesystem::create_directories(folder);
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  for (const auto& [name, error] : kErrors) {
    ReadAll(TestData() + "/hostile/" + name).IgnoreError();
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::current_path(before);
}

TEST(TorchHostile, NoFileMakesTheReaderAllocateMuch) {
  for (const auto& [name, error] : kErrors) {
    const std::string path = TestData() + "/hostile/" + name;
    const size_t file_bytes = std::filesystem::file_size(path);
    const AllocationWatch watch;
    ReadAll(path).IgnoreError();
    // The stack and the memo of a deep pickle grow by doubling.
    EXPECT_LE(watch.largest_bytes(), (2u << 20) + 16 * file_bytes) << name;
  }
}

TEST(TorchHostile, TruncationAnywhereIsAnErrorAndNoCrash) {
  for (const char* name :
       {"benign_kimi/state_dict.pt", "benign_kimi/state_dict_legacy.pt"}) {
    std::ifstream file(TestData() + "/hostile/" + name, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    ASSERT_GT(bytes.size(), 1000u);
    for (size_t size = 0; size < bytes.size(); size += 7) {
      const auto checkpoint =
          ReadTorchBytes(BytesInMemory(bytes.substr(0, size), "cut"));
      EXPECT_TRUE(absl::IsInvalidArgument(checkpoint.status()))
          << name << " cut to " << size;
    }
  }
}

}  // namespace
}  // namespace txl
