// A fuzz target over its corpus and over damaged copies of it, in every build.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/model/checkpoint/raw_safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace txl {
namespace {

constexpr int kDamagedCopies = 300;  // of each input

void RunTarget(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()),
                         input.size());
}

std::vector<std::string> Corpus() {
  const char* data = std::getenv("TXL_TEST_DATA");
  const std::string folder = std::string(data != nullptr ? data : "tests") +
                             "/fuzz/corpus/" TXL_FUZZ_TARGET;
  std::vector<std::string> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    inputs.push_back(ReadWholeFile(entry.path()));
  }
  std::sort(inputs.begin(), inputs.end());
  return inputs;
}

TEST(FuzzReplay, NoInputOfTheCorpusCrashes) {
  const std::vector<std::string> corpus = Corpus();
  EXPECT_GE(corpus.size(), 3u);
  for (const std::string& input : corpus) RunTarget(input);
}

TEST(FuzzReplay, NoDamagedInputCrashes) {
  std::mt19937_64 random(1);  // the same copies in every run
  for (const std::string& input : Corpus()) {
    if (input.empty()) continue;
    for (int i = 0; i < kDamagedCopies; ++i) {
      std::string damaged = input;
      for (uint64_t flips = 1 + random() % 4; flips > 0; --flips) {
        damaged[random() % damaged.size()] = static_cast<char>(random());
      }
      if (random() % 4 == 0) damaged.resize(random() % damaged.size());
      RunTarget(damaged);
    }
  }
}

}  // namespace
}  // namespace txl
