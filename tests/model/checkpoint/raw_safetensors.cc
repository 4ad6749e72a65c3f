#include "tests/model/checkpoint/raw_safetensors.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace txl {
namespace {

// Everything that was made, removed when the program ends.
class MadePaths {
 public:
  ~MadePaths() {
    std::error_code error;
    for (const std::string& path : paths_) {
      std::filesystem::remove_all(path, error);
    }
  }
  void Add(const std::string& path) { paths_.insert(path); }

 private:
  std::set<std::string> paths_;
};

// Named after the test: tests of one program may run at the same time.
std::string TempPath(const std::string& name) {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  std::string path = absl::StrCat("txl_", info->test_suite_name(), "_",
                                  info->name(), "_", name);
  for (char& c : path) {
    if (c == '/') c = '_';
  }
  static MadePaths made;
  path = testing::TempDir() + path;
  made.Add(path);
  return path;
}

}  // namespace

std::string RawSafetensors(const std::string& header, const std::string& data) {
  std::string file;
  for (int i = 0; i < 8; ++i) {
    file += static_cast<char>((uint64_t{header.size()} >> (8 * i)) & 0xff);
  }
  return file + header + data;
}

std::string Entry(const std::string& name, const std::string& dtype,
                  const std::string& shape, uint64_t begin, uint64_t end) {
  return absl::StrCat("\"", name, "\":{\"dtype\":\"", dtype,
                      "\",\"shape\":", shape, ",\"data_offsets\":[", begin, ",",
                      end, "]}");
}

std::string Header(const std::vector<std::string>& entries) {
  return absl::StrCat("{", absl::StrJoin(entries, ","), "}");
}

std::string F32Bytes(const std::vector<float>& values) {
  // Null for an empty vector, which memcpy may not be given.
  if (values.empty()) return "";
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(float));
}

std::string WriteTempFile(const std::string& name, const std::string& content) {
  const std::string path = TempPath(name);
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string ReadWholeFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

std::string FreshTempFolder(const std::string& name) {
  const std::string path = TempPath(name);
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

}  // namespace txl
