#pragma once

// Files made byte by byte, independent of the writer under test.

#include <cstdint>
#include <string>
#include <vector>

namespace txl {

// The length of `header` as 8 little-endian bytes, `header`, `data`.
std::string RawSafetensors(const std::string& header, const std::string& data);

// A header entry.
std::string Entry(const std::string& name, const std::string& dtype,
                  const std::string& shape, uint64_t begin, uint64_t end);

// The JSON object of these entries.
std::string Header(const std::vector<std::string>& entries);

// The f32 numbers as bytes.
std::string F32Bytes(const std::vector<float>& values);

// A file of that content in the test's temporary folder; the path.
std::string WriteTempFile(const std::string& name, const std::string& content);

std::string ReadWholeFile(const std::string& path);

// An empty folder of that name in the test's temporary folder; the path.
std::string FreshTempFolder(const std::string& name);

}  // namespace txl
