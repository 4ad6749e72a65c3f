#pragma once

// Files of expected values beside these tests.

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace txl {

inline std::string DataPath(const std::string& name) {
  return std::string(std::getenv("TXL_TEST_DATA")) + "/model/text/data/" + name;
}

inline std::string DataFile(const std::string& name) {
  std::ifstream in(DataPath(name), std::ios::binary);
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

inline nlohmann::json DataJson(const std::string& name) {
  return nlohmann::json::parse(DataFile(name));
}

}  // namespace txl
