#include "server/flag_table.h"

#include <gtest/gtest.h>

namespace txl {
namespace {

const std::vector<std::string> kNames = {"slots", "slot-memory",
                                         "session-memory", "drain-timeout"};

TEST(NoSuchSettingTest, NamesBoth) {
  EXPECT_EQ(NoSuchSetting("slotss", kNames),
            "slotss: no such setting; did you mean slots?");
  EXPECT_EQ(NoSuchSetting("telemetry", kNames), "telemetry: no such setting");
  EXPECT_EQ(NoSuchSetting("slots", kNames),
            "slots: is a flag only, it cannot be set here");
}

TEST(IsForeignVariableTest, WhatOtherProgramsOfTheProjectRead) {
  for (const char* name :
       {"TXL_SERVER", "TXL_ADMIN", "TXL_TEST_DATA", "TXL_PROXY_SERVER_1",
        "TXL_SOAK_SECONDS", "TXL_CUT_TURNS", "TXL_FUZZ_SECONDS", "TXL_JOBS",
        "TXL_CERTIFICATES", "TXL_PUBLIC_PORT", "TXL_DEVICE_SECONDS",
        "TXL_IMAGE_TARGET"}) {
    EXPECT_TRUE(IsForeignVariable(name, "1")) << name;
  }
}

TEST(IsForeignVariableTest, WhatKubernetesMakesOfAService) {
  EXPECT_TRUE(IsForeignVariable("TXL_PORT", "tcp://10.0.0.1:50051"));
  EXPECT_TRUE(IsForeignVariable("TXL_SERVICE_HOST", "10.0.0.1"));
  EXPECT_TRUE(IsForeignVariable("TXL_GRPC_SERVICE_PORT", "50051"));
  EXPECT_TRUE(IsForeignVariable("TXL_SERVICE_PORT_METRICS", "9464"));
  EXPECT_TRUE(IsForeignVariable("TXL_PORT_50051_TCP_ADDR", "10.0.0.1"));
}

// https://docs.docker.com/engine/network/links/, environment variables.
TEST(IsForeignVariableTest, WhatDockerMakesOfALink) {
  EXPECT_TRUE(IsForeignVariable("TXL_NAME", "/web/txl"));
  EXPECT_TRUE(IsForeignVariable("TXL_1_NAME", "/web/txl_1"));
  EXPECT_TRUE(IsForeignVariable("TXL_PORT", "tcp://172.17.0.5:50051"));
  EXPECT_TRUE(IsForeignVariable("TXL_PORT_8080_TCP", "tcp://172.17.0.5:8080"));
  for (const char* end :
       {"ADDR", "PORT", "PROTO", "START", "END", "PORT_START", "PORT_END"}) {
    const std::string name = std::string("TXL_WEB_PORT_8080_UDP_") + end;
    EXPECT_TRUE(IsForeignVariable(name, "x")) << name;
  }
  EXPECT_TRUE(IsForeignVariable("TXL_ENV_PATH", "/bin"));
  EXPECT_TRUE(IsForeignVariable("TXL_WEB_ENV_slots", "1"));
}

TEST(IsForeignVariableTest, NotASettingWhoseValueLooksLikeALink) {
  EXPECT_FALSE(IsForeignVariable("TXL_STOR", "redis://a:1"));
  EXPECT_FALSE(IsForeignVariable("TXL_PORT", "50051"));
  EXPECT_FALSE(IsForeignVariable("TXL_PORT_TCP_X", "1"));
  EXPECT_FALSE(IsForeignVariable("TXL_MODEL_NAME", "shakespeare"));
}

TEST(IsForeignVariableTest, NotAMisspeltSetting) {
  for (const char* name : {"TXL_DRAIN_TIMOUT", "TXL_SLOT_MEMROY", "TXL_",
                           "TXL_SERVERS", "TXL_DEVICES", "TXL_IMAGE_DRI"}) {
    EXPECT_FALSE(IsForeignVariable(name, "1")) << name;
  }
}

}  // namespace

}  // namespace txl
