// Seeds from the command line; without them the tests.

#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "server/store/redis/function_library.h"
#include "tests/server/store/redis/history/history_simulation.h"

namespace txl::history {
namespace {

// "--NAME N" among the arguments; `value` stays where it is not there.
bool ReadFlag(int argc, char** argv, const std::string& name, int64_t* value) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (argv[i] == name) return absl::SimpleAtoi(argv[i + 1], value);
  }
  return false;
}

int Replay(LuaLibrary& library, uint64_t seed) {
  const HistoryResult result = RunHistory(library, seed, /*tracing=*/true);
  std::printf(
      "%s\nseed %lu: %s\n", absl::StrJoin(result.trace, "\n").c_str(), seed,
      result.violation.empty() ? "linearizable" : result.violation.c_str());
  return result.violation.empty() ? 0 : 1;
}

int RunRange(LuaLibrary& library, uint64_t first, int64_t count) {
  const HistoriesResult result = RunHistories(library, first, count);
  if (!result.violation.empty()) {
    std::printf("%s\n", result.violation.c_str());
    return 1;
  }
  std::printf("%ld histories from seed %lu on: all linearizable\n", result.run,
              first);
  return 0;
}

}  // namespace
}  // namespace txl::history

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  using namespace txl::history;
  int64_t seed = 1;
  int64_t seeds = 0;
  const bool one = ReadFlag(argc, argv, "--seed", &seed);
  const bool many = ReadFlag(argc, argv, "--seeds", &seeds);
  if (!one && !many) return RUN_ALL_TESTS();
  const auto library = LuaLibrary::Load(txl::RedisFunctionLibrary());
  if (!library.ok()) {
    std::printf("%s\n", library.status().ToString().c_str());
    return 1;
  }
  const auto first = static_cast<uint64_t>(seed);
  return many ? RunRange(**library, first, seeds) : Replay(**library, first);
}
