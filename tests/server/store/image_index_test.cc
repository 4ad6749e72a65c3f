#include "server/store/image_index.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace txl {
namespace {

std::string Oldest(const ImageIndex& index, const std::string& spared = "") {
  const std::string* key = index.Oldest(spared);
  return key == nullptr ? "none" : *key;
}

TEST(ImageIndex, IsEmptyAtFirst) {
  const ImageIndex index;
  EXPECT_EQ(index.bytes(), 0);
  EXPECT_EQ(index.BytesOf("a"), 0);
  EXPECT_EQ(Oldest(index), "none");
}

TEST(ImageIndex, KnowsTheOldest) {
  ImageIndex index;
  index.Set("a", 10, 3);
  index.Set("b", 20, 1);
  index.Set("c", 30, 2);
  EXPECT_EQ(index.bytes(), 60);
  EXPECT_EQ(Oldest(index), "b");
  EXPECT_EQ(Oldest(index, "b"), "c");
  index.Set("b", 5, 4);  // used again, smaller
  EXPECT_EQ(index.bytes(), 45);
  EXPECT_EQ(index.BytesOf("b"), 5);
  EXPECT_EQ(Oldest(index), "c");
}

TEST(ImageIndex, ForgetsWhatIsErased) {
  ImageIndex index;
  index.Set("a", 10, 1);
  index.Set("b", 20, 1);  // used at the same time
  index.Erase("a");
  index.Erase("never there");
  EXPECT_FALSE(index.Contains("a"));
  EXPECT_EQ(index.Keys(), std::vector<std::string>{"b"});
  EXPECT_EQ(index.bytes(), 20);
  EXPECT_EQ(Oldest(index, "b"), "none");
}

}  // namespace
}  // namespace txl
