#pragma once

// A folder of image files that is new for each test, and images to put there.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "model/memory/state_image.h"
#include "server/base/digest.h"
#include "server/store/image_files.h"

namespace txl {

inline constexpr int64_t kAnySize = int64_t{1} << 40;

inline StateImage MakeImage(size_t bytes, uint32_t seed) {
  StateImage image;
  image.identity.fingerprint = "abc";
  image.identity.window = 7;
  image.identity.mem_len = 5;
  image.identity.d_model = 4;
  image.identity.n_layer = 3;
  image.identity.zero_start = seed % 2 == 1;
  image.identity.row_dtype = "f32";
  image.identity.kernel = "torch-cpu";
  image.position = 1000 + seed;
  image.rows = 2;
  std::mt19937 random(seed);
  image.data.resize(bytes);
  for (uint8_t& byte : image.data) byte = static_cast<uint8_t>(random());
  image.Seal();
  return image;
}

inline bool EqualImages(const StateImage& a, const StateImage& b) {
  return a.format_version == b.format_version && a.identity == b.identity &&
         a.position == b.position && a.rows == b.rows && a.data == b.data &&
         a.checksum == b.checksum;
}

class ImageFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(
        testing::TempDir(), "txl_images_",
        testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    Open();
  }
  void TearDown() override {
    files_ = nullptr;
    std::filesystem::remove_all(folder_);
  }

  // As after a restart.
  void Open(int64_t max_bytes = kAnySize) {
    files_ = nullptr;
    files_ = OpenAnother(max_bytes, absl::InfiniteDuration());
  }
  // As another server on the folder does.
  std::unique_ptr<ImageFiles> OpenAnother(
      int64_t max_bytes = kAnySize,
      absl::Duration look_again = absl::Hours(1)) const {
    auto files = ImageFiles::Open(folder_, max_bytes, look_again);
    EXPECT_TRUE(files.ok()) << files.status();
    return files.ok() ? *std::move(files) : nullptr;
  }

  static std::string KeyOf(const std::string& session_id) {
    return absl::BytesToHexString(Sha256Of(session_id));
  }
  std::string FolderOf(const std::string& session_id) const {
    const std::string key = KeyOf(session_id);
    return absl::StrCat(folder_, "/images/", key.substr(0, 2), "/", key);
  }
  // Its only file; where there is none, a name of none.
  std::string PathOf(const std::string& session_id) const {
    const std::vector<ImageEntry> images = ListImages(FolderOf(session_id));
    EXPECT_LE(images.size(), 1u);
    return images.empty() ? FolderOf(session_id) + "/none" : images[0].path;
  }
  std::string AsideOf(const std::string& session_id) const {
    return absl::StrCat(folder_, "/quarantine/", KeyOf(session_id), ".txlm");
  }
  absl::StatusOr<StoredImage> Get(const std::string& session_id,
                                  int64_t most_bytes = kAnySize) {
    return files_->Get(session_id, most_bytes);
  }
  bool Has(const std::string& session_id) { return Get(session_id).ok(); }
  // Files being written; there are none between calls.
  int CountNew() const {
    const std::filesystem::directory_iterator entries(folder_ + "/images/new");
    return static_cast<int>(std::distance(begin(entries), end(entries)));
  }

  static std::string ReadFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void WriteFile(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  const std::string digest_ = std::string(31, 'd') + '\0';
  std::string folder_;
  std::unique_ptr<ImageFiles> files_;
};

}  // namespace txl
