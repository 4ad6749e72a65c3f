#include "tests/model/convert/golden_conversion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "model/checkpoint/canonical_tensors.h"
#include "model/checkpoint/safetensors.h"
#include "model/config/model_config.h"
#include "tests/model/golden_paths.h"

namespace txl {
namespace {

namespace fs = std::filesystem;

struct OpenTensors {
  ModelConfig config;
  std::unique_ptr<SafetensorsReader> reader;
};

OpenTensors Open(const std::string& directory) {
  return {*ParseModelConfig(FileText(directory + "/config.json"), directory),
          *SafetensorsReader::Open(directory + "/model.safetensors")};
}

std::string Bytes(const SafetensorsReader& reader, const std::string& name) {
  const auto bytes = reader.Bytes(reader.tensors().at(name));
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace

std::string NativeFile(const std::string& golden_case,
                       const std::string& file) {
  return GoldenDirectory(golden_case) + "/native/" + file;
}

std::string GoldenSpec(const std::string& golden_case) {
  return GoldenDirectory(golden_case) + "/config.json";
}

std::string FreshFolder(const std::string& name) {
  const std::string folder = testing::TempDir() + "txl_convert_" + name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

std::string FileText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  ASSERT_TRUE(file.good()) << path;
}

absl::StatusOr<ConvertReport> ConvertTo(const std::string& folder,
                                        const std::string& source,
                                        const std::string& spec) {
  ConvertOptions options;
  options.plan.source = source;
  options.plan.spec_path = spec;
  options.directory = folder + "/model";
  return Convert(options);
}

void ExpectGoldenTensors(const std::string& directory,
                         const std::string& golden_case) {
  const OpenTensors actual = Open(directory);
  const OpenTensors golden = Open(GoldenDirectory(golden_case));
  const auto canonical = CanonicalTensors(actual.config);
  const auto& own = actual.reader->tensors();
  for (const auto& [name, info] : golden.reader->tensors()) {
    ASSERT_TRUE(canonical.contains(name)) << name;
    const std::string& tied_to = canonical.at(name).tied_to;
    const std::string here = own.contains(name) ? name : tied_to;
    ASSERT_TRUE(own.contains(here)) << name;
    EXPECT_EQ(own.at(here).shape, info.shape) << name;
    EXPECT_EQ(own.at(here).dtype, info.dtype) << name;
    EXPECT_TRUE(Bytes(*actual.reader, here) == Bytes(*golden.reader, name))
        << name;
  }
  for (const auto& [name, info] : own) {
    EXPECT_TRUE(golden.reader->tensors().contains(name)) << name;
  }
}

void ExpectGoldenFields(const std::string& directory,
                        const std::string& golden_case,
                        const std::vector<std::string>& except) {
  const auto fields = [&](const std::string& where) {
    return nlohmann::json::parse(ModelConfigToJson(Open(where).config));
  };
  const nlohmann::json golden = fields(GoldenDirectory(golden_case));
  const nlohmann::json actual = fields(directory);
  for (const auto& [field, value] : golden.items()) {
    if (std::find(except.begin(), except.end(), field) != except.end()) {
      continue;
    }
    EXPECT_EQ(actual.value(field, nlohmann::json()), value) << field;
  }
}

}  // namespace txl
