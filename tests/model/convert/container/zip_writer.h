#pragma once

// Zip archives made byte by byte, independent of the reader under test.

#include <cstdint>
#include <string>
#include <vector>

namespace txl {

struct RawZipRecord {
  std::string name = {};
  std::string data = {};
  // What the two headers claim; -1: the truth.
  int64_t central_bytes = -1;
  int64_t local_bytes = -1;
  int64_t crc32 = -1;
  int64_t local_offset = -1;
  uint16_t method = 0;
  uint16_t flags = 0;
  std::string local_name = {};  // empty: `name`
  bool zip64 = false;           // sizes and offset in an extra field
};

struct RawZip {
  std::vector<RawZipRecord> records = {};
  bool zip64_end = false;
  std::string comment = {};
  int64_t entries = -1;  // what the end claims; -1: the truth
  uint16_t disk = 0;
};

std::string ZipBytes(const RawZip& zip);

// `number` as little-endian bytes.
std::string Little(uint64_t number, int bytes);

}  // namespace txl
