#pragma once

// UTF-8 as Unicode 15 writes it down (section 3.9, table 3-7), read off the
// table and sharing nothing with the code under test.

#include <cstdint>
#include <random>
#include <string>

namespace txl {

// The bytes of a code point, by the bit distribution of table 3-6.
std::string EncodeCodePoint(uint32_t code_point);

// Length of the longest start of `bytes` that is a character or the start of
// one by table 3-7; *is_character says which. 0: the first byte opens nothing.
size_t MaximalSubpart(const std::string& bytes, bool* is_character);

// "Substitution of maximal subparts": what U+FFFD replaces.
std::string OracleReplaceInvalid(const std::string& bytes);

// Up to max_size bytes, mostly the ones at the borders of table 3-7.
std::string RandomHardBytes(std::mt19937& random, size_t max_size);

}  // namespace txl
