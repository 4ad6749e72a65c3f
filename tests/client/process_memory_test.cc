#include "tests/client/process_memory.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace txl::testing {
namespace {

constexpr size_t kMore = 32 << 20;

TEST(OwnBytesIn, IsOfAnonymousPagesInMemoryAndSwappedOut) {
  EXPECT_EQ(OwnBytesIn("Name:\ttxl-server\n"
                       "VmHWM:\t  9000 kB\n"
                       "VmRSS:\t  8000 kB\n"
                       "RssAnon:\t    30 kB\n"
                       "RssFile:\t  7000 kB\n"
                       "RssShmem:\t   500 kB\n"
                       "VmSwap:\t     4 kB\n"
                       "Threads:\t7\n"),
            34 * 1024);
}

TEST(OwnBytesIn, IsNotKnownWithoutOneOfTheTwo) {
  EXPECT_EQ(OwnBytesIn(""), -1);
  EXPECT_EQ(OwnBytesIn("RssAnon:\t30 kB\n"), -1);
  EXPECT_EQ(OwnBytesIn("VmSwap:\t4 kB\n"), -1);
  EXPECT_EQ(OwnBytesIn("RssAnon:\t30 pages\nVmSwap:\t4 kB\n"), -1);
}

TEST(OwnBytes, GrowsByWhatAProcessFills) {
  const int64_t before = OwnBytes(getpid());
  const std::vector<char> filled(kMore, 1);
  EXPECT_GE(OwnBytes(getpid()) - before, filled.size() / 2);
}

TEST(OwnBytes, DoesNotGrowByAFileThatIsRead) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::tmpfile(), std::fclose);
  ASSERT_EQ(ftruncate(fileno(file.get()), kMore), 0);
  void* mapped =
      mmap(nullptr, kMore, PROT_READ, MAP_SHARED, fileno(file.get()), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const int64_t before = OwnBytes(getpid());
  int sum = 0;
  for (size_t i = 0; i < kMore; i += 4096) {
    sum += static_cast<const volatile char*>(mapped)[i];
  }
  EXPECT_EQ(sum, 0);
  EXPECT_LT(OwnBytes(getpid()) - before, kMore / 2);
  munmap(mapped, kMore);
}

TEST(OwnBytes, OfAProcessThatIsNotThereFailsTheTest) {
  EXPECT_NONFATAL_FAILURE(OwnBytes(0), "process 0");
}

}  // namespace
}  // namespace txl::testing
