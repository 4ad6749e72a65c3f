#include "model/base/host_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace txl {
namespace {

using std::filesystem::path;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

// A host's file system with what the kernel says of its memory.
class HostMemoryTest : public ::testing::Test {
 protected:
  HostMemoryTest()
      : root_(path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(root_);
  }
  ~HostMemoryTest() override { std::filesystem::remove_all(root_); }

  void Write(const path& file, const std::string& text) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  void Machine(int64_t available) {
    Write("proc/meminfo",
          "MemTotal:       99999999 kB\nMemFree: 5 kB\n"
          "MemAvailable:   " +
              std::to_string(available / 1024) + " kB\nBuffers: 7 kB\n");
  }
  // A group of version 2.
  void Group(const std::string& name, const std::string& max, int64_t current,
             int64_t inactive_file) {
    const path group = path("sys/fs/cgroup") / name;
    Write(group / "memory.max", max + "\n");
    Write(group / "memory.current", std::to_string(current) + "\n");
    Write(group / "memory.stat", "anon 1\nfile 2\ninactive_file " +
                                     std::to_string(inactive_file) +
                                     "\nactive_file 3\n");
  }
  std::optional<int64_t> Available() const {
    return AvailableHostBytes(root_.string());
  }

 private:
  path root_;
};

TEST_F(HostMemoryTest, WhatTheMachineHasAvailable) {
  Machine(8 * kGiB);
  EXPECT_EQ(Available(), 8 * kGiB);
}

TEST_F(HostMemoryTest, AHostThatSaysNothing) {
  EXPECT_EQ(Available(), std::nullopt);
  Write("proc/meminfo", "MemTotal: 5 kB\nMemAvailable: much kB\n");
  EXPECT_EQ(Available(), std::nullopt);
}

TEST_F(HostMemoryTest, TheLimitOfAGroupLessWhatItUses) {
  Machine(8 * kGiB);
  Write("proc/self/cgroup", "0::/system.slice/txl.service\n");
  Group("system.slice/txl.service", std::to_string(2 * kGiB), 500 * kMiB,
        200 * kMiB);
  EXPECT_EQ(Available(), 2 * kGiB - 300 * kMiB);
}

TEST_F(HostMemoryTest, TheLeastOfTheGroupAndThoseAbove) {
  Machine(8 * kGiB);
  Write("proc/self/cgroup", "0::/a/b/c\n");
  Group("a", std::to_string(3 * kGiB), 2 * kGiB, 0);
  Group("a/b", "max", kGiB, 0);
  Group("a/b/c", std::to_string(4 * kGiB), kGiB, 0);
  EXPECT_EQ(Available(), kGiB);
}

TEST_F(HostMemoryTest, NoGroupAllowsMoreThanTheMachineHas) {
  Machine(kGiB);
  Write("proc/self/cgroup", "0::/a\n");
  Group("a", std::to_string(9 * kGiB), kGiB, 0);
  EXPECT_EQ(Available(), kGiB);
}

// With a namespace of its own it is the outermost group; without one the name
// is the host's, of which the container sees nothing.
TEST_F(HostMemoryTest, AContainersOwnGroup) {
  Machine(8 * kGiB);
  Group("", std::to_string(kGiB), 256 * kMiB, 0);
  for (const char* line : {"0::/\n", "0::/system.slice/docker-5f3a.scope\n"}) {
    Write("proc/self/cgroup", line);
    EXPECT_EQ(Available(), 768 * kMiB) << line;
  }
}

TEST_F(HostMemoryTest, GroupsOfTheFirstVersion) {
  Machine(8 * kGiB);
  Write("proc/self/cgroup",
        "12:cpu,cpuacct:/docker/5f\n9:memory:/docker/5f\n0::/x\n");
  const path group = "sys/fs/cgroup/memory/docker/5f";
  Write(group / "memory.limit_in_bytes", std::to_string(2 * kGiB));
  Write(group / "memory.usage_in_bytes", std::to_string(kGiB));
  Write(group / "memory.stat",
        "inactive_file 5\ntotal_inactive_file " + std::to_string(kMiB) + "\n");
  EXPECT_EQ(Available(), kGiB + kMiB);
  // What stands for no limit there.
  Write(group / "memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(Available(), 8 * kGiB);
}

TEST_F(HostMemoryTest, AGroupOverItsLimitHasNothingLeft) {
  Machine(8 * kGiB);
  Write("proc/self/cgroup", "0::/a\nnot a line of groups\n");
  Group("a", std::to_string(kGiB), kGiB + kMiB, 0);
  EXPECT_EQ(Available(), 0);
}

TEST(UsualMemoryLimitTest, AllButASixteenth) {
  EXPECT_EQ(UsualMemoryLimit(15 * kMiB, kMiB), 15 * kMiB);
  EXPECT_EQ(UsualMemoryLimit(0, 0), 0);
  EXPECT_EQ(UsualMemoryLimit(std::nullopt, kGiB), 4 * kGiB);
}

TEST(AvailableHostBytesTest, ThisHostHasSome) {
  const std::optional<int64_t> available = AvailableHostBytes();
  ASSERT_TRUE(available.has_value());
  EXPECT_GT(*available, kMiB);
}

TEST(UsualSlotBytesTest, HalfOfWhatIsLeftOnceTheWeightsArePacked) {
  EXPECT_EQ(UsualSlotBytes(9 * kGiB, kGiB), 4 * kGiB);
  EXPECT_EQ(UsualSlotBytes(kGiB, 2 * kGiB), 0);
}

TEST(UsualSlotBytesTest, OneGiBWhereNothingIsKnown) {
  EXPECT_EQ(UsualSlotBytes(std::nullopt, 8 * kGiB), kGiB);
}

}  // namespace
}  // namespace txl
