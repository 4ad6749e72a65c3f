#pragma once

// What the original code computes for a golden case.

#include <cstdint>
#include <string>
#include <vector>

namespace txl::testing {

struct GoldenCase {
  std::string directory;
  int64_t vocabulary = 0;
  int64_t memory_length = 0;
  std::vector<uint32_t> tokens;
  // [tokens, vocabulary]: row t is the log-distribution of the token after
  // tokens 0..t, fed one by one.
  std::vector<double> logprobs;
  // Allowed difference of a float32 implementation.
  double tolerance = 0;

  double Logprob(int64_t row, uint32_t token) const {
    return logprobs[row * vocabulary + token];
  }
};

// Every case of the folder, by name.
std::vector<std::string> GoldenCaseNames();

// Fails the test when the case cannot be read.
GoldenCase LoadGoldenCase(const std::string& name);

}  // namespace txl::testing
