#include "server/store/image_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ImageFolderTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name) << bytes;
  }
  std::vector<int64_t> Positions() const {
    std::vector<int64_t> positions;
    for (const ImageEntry& image : ListImages(folder_)) {
      positions.push_back(image.position);
    }
    return positions;
  }

  const std::string folder_ = ::testing::TempDir() + "/txl_image_folder";
};

TEST_F(ImageFolderTest, NamesSayPositionAndHead) {
  // SHA-256 of "abc" (FIPS 180-2, appendix B.1) begins so.
  EXPECT_EQ(ImageNameOf(1276, "abc"),
            "1276-ba7816bf8f01cfea414140de5dae2223.txlm");
  EXPECT_NE(ImageNameOf(1276, "abd"), ImageNameOf(1276, "abc"));
}

TEST_F(ImageFolderTest, TheLargestPositionComesFirst) {
  for (const int64_t position : {5, 1000, 0, 99}) {
    Write(ImageNameOf(position, "head"), std::string(position, 'x'));
  }
  EXPECT_THAT(Positions(), ElementsAre(1000, 99, 5, 0));
  const ImageEntry first = ListImages(folder_)[0];
  EXPECT_EQ(first.path, folder_ + "/" + ImageNameOf(1000, "head"));
  EXPECT_EQ(first.bytes, 1000);
}

TEST_F(ImageFolderTest, OtherNamesAreNone) {
  const std::string name = ImageNameOf(7, "head");
  for (const std::string& other :
       {std::string("notes.txlm"), name + "x", "-" + name, "x" + name,
        name.substr(0, name.size() - 6) + ".txlm", std::string("7-.txlm")}) {
    Write(other, "x");
  }
  EXPECT_THAT(Positions(), IsEmpty());
  Write(name, "x");
  EXPECT_THAT(Positions(), ElementsAre(7));
  EXPECT_THAT(ListImages(folder_ + "/missing"), IsEmpty());
}

TEST_F(ImageFolderTest, AUseIsTheFilesTime) {
  Write(ImageNameOf(7, "head"), "x");
  const int fd = open(ListImages(folder_)[0].path.c_str(), O_RDONLY);
  ASSERT_GE(fd, 0);
  SetUse(fd, 1'700'000'000'000'000'000);
  close(fd);
  EXPECT_EQ(ListImages(folder_)[0].use, 1'700'000'000'000'000'000);
}

}  // namespace
}  // namespace txl
