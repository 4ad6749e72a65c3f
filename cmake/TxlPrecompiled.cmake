# Headers that GCC or Clang read once for many files. Together they are up to
# two thirds of what a file takes to compile; more than these (gRPC's, CLI11's)
# slow GCC down again, which then instantiates for every file what one needs.
# Most presets do without, so that a missing include is noticed.
set(txl_plain_headers
  <absl/status/status.h> <absl/status/statusor.h> <absl/strings/str_cat.h>
  <absl/strings/string_view.h> <absl/types/span.h>
  <algorithm> <cstdint> <functional> <map> <memory> <optional> <string>
  <utility> <vector>)
set(txl_json_headers ${txl_plain_headers} <nlohmann/json.hpp>)
set(txl_tensor_headers ${txl_plain_headers} <ATen/core/Tensor.h>)
set(txl_tensor_target txl_torch)
set(txl_json_target nlohmann_json::nlohmann_json)
set(txl_test_headers <gmock/gmock.h> <gtest/gtest.h>)

# txl_precompile(target KIND [TEST|FAST_TEST]): KIND is plain, json, tensor or
# none.
function(txl_precompile NAME KIND)
  set(test ${ARGN})
  if(KIND STREQUAL "none" OR TXL_CUDA OR CMAKE_DISABLE_PRECOMPILE_HEADERS)
    return()
  endif()
  set(owner txl_precompiled_${KIND})
  set(headers ${txl_${KIND}_headers})
  if(test)
    string(TOLOWER ${owner}_${test} owner)
    list(APPEND headers ${txl_test_headers})
  endif()
  if(NOT TARGET ${owner})
    set(source ${CMAKE_BINARY_DIR}/${owner}.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n")
    if(test)
      # A program's code is compiled in another way than a library's (PIE).
      add_executable(${owner} EXCLUDE_FROM_ALL ${source})
      target_link_libraries(${owner} PRIVATE GTest::gmock GTest::gtest)
      txl_compile_quickly(${owner} ${test})
    else()
      add_library(${owner} OBJECT EXCLUDE_FROM_ALL ${source})
    endif()
    target_link_libraries(${owner} PRIVATE txl_options ${txl_${KIND}_target})
    target_precompile_headers(${owner} PRIVATE ${headers})
  endif()
  target_precompile_headers(${NAME} REUSE_FROM ${owner})
  # GCC forgets which lines of a precompiled header are a library's, and warns
  # of what it takes for overflows in std::string.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(overflows -Wno-array-bounds -Wno-stringop-overflow
      -Wno-stringop-overread -Wno-maybe-uninitialized)
    target_compile_options(${NAME} PRIVATE
      "$<$<COMPILE_LANGUAGE:CXX>:${overflows}>")
  endif()
endfunction()

# txl_compile_quickly(target [TEST]): for what needs to build fast rather than
# to run fast. Command lines, what waits for files and networks, and tests that
# calculate are optimized a little (-O1), other tests (TEST) not at all.
function(txl_compile_quickly NAME)
  set(level -O1)
  if("${ARGN}" STREQUAL "TEST")
    set(level -O0)
  endif()
  target_compile_options(${NAME} PRIVATE
    $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:${level}>)
endfunction()
