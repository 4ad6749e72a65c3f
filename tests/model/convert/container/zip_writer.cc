#include "tests/model/convert/container/zip_writer.h"

namespace txl {
namespace {

// Bit by bit, from the polynomial.
uint32_t Crc32(const std::string& data) {
  uint32_t crc = ~0u;
  for (const char c : data) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
    }
  }
  return ~crc;
}

uint64_t Or(int64_t claimed, uint64_t truth) {
  return claimed < 0 ? truth : static_cast<uint64_t>(claimed);
}

std::string Header(const RawZipRecord& record, bool central, uint64_t offset) {
  const std::string& name =
      central || record.local_name.empty() ? record.name : record.local_name;
  const uint64_t bytes = Or(central ? record.central_bytes : record.local_bytes,
                            record.data.size());
  const uint64_t at = Or(record.local_offset, offset);
  std::string extra;
  if (record.zip64) {
    extra = Little(0x7075, 2) + Little(3, 2) + "abc";  // of another kind
    extra += Little(1, 2) + Little(central ? 24 : 16, 2) + Little(bytes, 8) +
             Little(bytes, 8) + (central ? Little(at, 8) : "");
  }
  const uint64_t shown = record.zip64 ? 0xFFFFFFFF : bytes;
  std::string header = central ? "PK\1\2" + Little(20, 2) : "PK\3\4";
  header += Little(20, 2) + Little(record.flags, 2) + Little(record.method, 2) +
            Little(0, 4) + Little(Or(record.crc32, Crc32(record.data)), 4) +
            Little(shown, 4) + Little(shown, 4) + Little(name.size(), 2) +
            Little(extra.size(), 2);
  if (central) {
    header +=
        Little(0, 2) + Little(0, 8) + Little(record.zip64 ? 0xFFFFFFFF : at, 4);
  }
  return header + name + extra;
}

}  // namespace

std::string Little(uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i));
  return text;
}

std::string ZipBytes(const RawZip& zip) {
  std::string file;
  std::string directory;
  for (const RawZipRecord& record : zip.records) {
    directory += Header(record, /*central=*/true, file.size());
    file += Header(record, /*central=*/false, 0) + record.data;
  }
  const uint64_t start = file.size();
  const uint64_t entries = Or(zip.entries, zip.records.size());
  file += directory;
  if (zip.zip64_end) {
    const uint64_t end64 = file.size();
    file += "PK\6\6" + Little(44, 8) + Little(45, 2) + Little(45, 2) +
            Little(0, 8) + Little(entries, 8) + Little(entries, 8) +
            Little(directory.size(), 8) + Little(start, 8);
    file += "PK\6\7" + Little(0, 4) + Little(end64, 8) + Little(1, 4);
  }
  const bool wide = zip.zip64_end;
  file += "PK\5\6" + Little(zip.disk, 2) + Little(zip.disk, 2) +
          Little(wide ? 0xFFFF : entries, 2) +
          Little(wide ? 0xFFFF : entries, 2) +
          Little(wide ? 0xFFFFFFFF : directory.size(), 4) +
          Little(wide ? 0xFFFFFFFF : start, 4) + Little(zip.comment.size(), 2) +
          zip.comment;
  return file;
}

}  // namespace txl
