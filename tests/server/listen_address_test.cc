#include "server/listen_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace txl {
namespace {

using ::testing::HasSubstr;

TEST(ListenAddress, IsHostAndPortOrAUnixSocket) {
  for (const char* good : {"127.0.0.1:0", "[::1]:50051", "host:65535",
                           "unix:/run/txl.sock", "unix:relative"}) {
    EXPECT_EQ(CheckListen(good), "") << good;
    EXPECT_EQ(CheckAdminListen(good), "") << good;
  }
  for (const char* bad : {"off", "auto", "", "host", ":1", "host:", "host:x",
                          "host:-1", "host:65536", "host:+80", "host: 80",
                          "::1:80", "http://127.0.0.1:80"}) {
    EXPECT_THAT(CheckListen(bad), HasSubstr("neither HOST:PORT nor unix:PATH"))
        << bad;
  }
  EXPECT_EQ(CheckListen("unix:"), "unix: needs a path");
}

TEST(AdminAddress, MayBeLeftToTheServerOrBeNone) {
  for (const char* word : {"auto", "off", "OFF", "Auto", ""}) {
    EXPECT_EQ(CheckAdminListen(word), "") << word;
  }
  EXPECT_NE(CheckAdminListen("on"), "");
}

TEST(AdminAddress, IsASocketInTheFolderOfTheStoreUnlessSomebodySays) {
  EXPECT_EQ(AdminAddress("auto", "/data"), "unix:/data/admin.sock");
  EXPECT_EQ(AdminAddress("AUTO", "/data"), "unix:/data/admin.sock");
  EXPECT_EQ(AdminAddress("Off", "/data"), "");
  EXPECT_EQ(AdminAddress("auto", ""), "");
  for (const char* folder : {"", "/data"}) {
    EXPECT_EQ(AdminAddress("off", folder), "");
    EXPECT_EQ(AdminAddress("", folder), "");
    EXPECT_EQ(AdminAddress("unix:/s", folder), "unix:/s");
    EXPECT_EQ(AdminAddress("127.0.0.1:7", folder), "127.0.0.1:7");
  }
}

}  // namespace
}  // namespace txl
