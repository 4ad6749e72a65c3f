// How much memory writing needs: a tensor, not a file.

#include <filesystem>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "model/convert/container/open_file_checkpoint.h"
#include "model/convert/tensor_file_writer.h"
#include "tests/model/checkpoint/raw_safetensors.h"

namespace txl {
namespace {

constexpr int64_t kTensors = 16;
constexpr int64_t kRows = 2048, kColumns = 2048;  // F32: 16 MiB
constexpr uint64_t kTensorBytes = kRows * kColumns * 4;
// The tensor in the making, a piece of it, and what was read for the piece.
constexpr uint64_t kMaxGrowth = 3 * kTensorBytes + (4 << 20);

// A figure in bytes of /proc/self/status.
uint64_t Status(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    absl::string_view rest = line;
    uint64_t kib = 0;
    if (absl::ConsumePrefix(&rest, field + ":") &&
        absl::ConsumeSuffix(&rest, "kB") && absl::SimpleAtoi(rest, &kib)) {
      return kib << 10;
    }
  }
  ADD_FAILURE() << "no " << field;
  return 0;
}

// Zeros are written as nothing where the file system can: a sparse file.
std::string SparseCheckpoint(const std::string& folder) {
  std::vector<std::string> entries;
  for (int64_t i = 0; i < kTensors; ++i) {
    entries.push_back(Entry(absl::StrCat("layer.", i, ".w"), "F32",
                            absl::StrCat("[", kRows, ",", kColumns, "]"),
                            i * kTensorBytes, (i + 1) * kTensorBytes));
  }
  const std::string head = RawSafetensors(Header(entries), "");
  const std::string path = folder + "/large.safetensors";
  std::ofstream(path, std::ios::binary) << head;
  std::filesystem::resize_file(path, head.size() + kTensors * kTensorBytes);
  return path;
}

TEST(TensorFileMemory, StaysWithinAFewTensors) {
  const std::string folder = FreshTempFolder("tensor_memory");
  const auto checkpoint = ReadSafetensorsFile(SparseCheckpoint(folder));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  std::map<std::string, PlannedTensor> tensors;
  for (const auto& [name, tensor] : checkpoint->tensors) {
    tensors[name].pieces = {Rows(tensor, 0, kRows / 2),
                            Rows(tensor, kRows / 2, kRows)};
  }
  // Joined inside, and turned: both hold a whole tensor.
  PlannedTensor& joined = tensors["layer.0.w"];
  joined = {{Columns(checkpoint->tensors.at("layer.0.w"), 0, 100),
             Columns(checkpoint->tensors.at("layer.0.w"), 100, kColumns)},
            1};
  tensors["layer.1.w"] = {{Transposed(checkpoint->tensors.at("layer.1.w"))}};

  const uint64_t before = Status("VmRSS");
  std::ofstream("/proc/self/clear_refs") << "5";  // forgets earlier peaks
  const std::string path = folder + "/out.safetensors";
  const absl::Status written = WriteTensorFile(path, tensors, {});
  ASSERT_TRUE(written.ok()) << written;
  const uint64_t growth = Status("VmHWM") - before;
  RecordProperty("growth_bytes", static_cast<int>(growth));
  EXPECT_GE(std::filesystem::file_size(path), kTensors * kTensorBytes);
  EXPECT_LE(growth, kMaxGrowth);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace txl
