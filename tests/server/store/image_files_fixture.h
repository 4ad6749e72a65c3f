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
    auto files = ImageFiles::Open(folder_, max_bytes);
    ASSERT_TRUE(files.ok()) << files.status();
    files_ = *std::move(files);
  }

  std::string NameOf(const std::string& session_id) const {
    return absl::StrCat(absl::BytesToHexString(Sha256Of(session_id)), ".txlm");
  }
  std::string PathOf(const std::string& session_id) const {
    const std::string name = NameOf(session_id);
    return absl::StrCat(folder_, "/images/", name.substr(0, 2), "/", name);
  }
  std::string AsideOf(const std::string& session_id) const {
    return absl::StrCat(folder_, "/quarantine/", NameOf(session_id));
  }
  bool Has(const std::string& session_id) {
    return files_->Get(session_id, kAnySize).ok();
  }
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
