// Any text as a tokenizer.json beside two small vocabulary files, and any bytes
// as those files: the input is cut at its first two bytes of 0.

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "model/text/vocabulary_loader.h"

namespace {

// A folder of this process, gone at its end.
struct OwnFolder {
  OwnFolder() { std::filesystem::create_directories(path); }
  ~OwnFolder() { std::filesystem::remove_all(path); }

  const std::filesystem::path path =
      std::filesystem::temp_directory_path() /
      ("tokenizer_fuzz_" + std::to_string(getpid()));
};

const std::filesystem::path& Folder() {
  static const OwnFolder folder;
  return folder.path;
}

// A new file each time: some file systems wait for the disk before they cut one
// short.
void Write(const char* name, const std::string& text) {
  std::filesystem::remove(Folder() / name);
  std::ofstream(Folder() / name, std::ios::binary) << text;
}

std::vector<std::string> CutAtZeros(const std::string& text, size_t parts) {
  std::vector<std::string> cut(1);
  for (const char c : text) {
    if (c == '\0' && cut.size() < parts) {
      cut.emplace_back();
    } else {
      cut.back() += c;
    }
  }
  cut.resize(parts);
  return cut;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<std::string> parts =
      CutAtZeros(std::string(data, data + size), 3);
  Write("tokenizer.json", parts[0]);
  Write("vocab.txt", parts[1]);
  Write("events.json", parts[2]);
  const auto vocabulary = txl::LoadVocabulary(Folder().string(), 3);
  if (!vocabulary.ok()) return 0;
  if ((*vocabulary)->size() != 3) abort();
  const auto ids = (*vocabulary)->Encode("a b \xc3\xa4 1");
  if (ids.ok() && !(*vocabulary)->Decode(*ids).ok()) std::abort();
  for (int32_t id = 0; id < 3; ++id) (*vocabulary)->TokenBytes(id);
  return 0;
}
