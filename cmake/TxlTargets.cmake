# One target per folder and one test program per tests/ folder.
include(GoogleTest)

# txl_library(NAME name SRCS a.cc ... DEPS target ...)
# A static library with the project's compile options.
function(txl_library)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS" ${ARGN})
  add_library(${ARG_NAME} STATIC ${ARG_SRCS})
  target_link_libraries(${ARG_NAME} PUBLIC ${ARG_DEPS}
    PRIVATE $<BUILD_INTERFACE:txl_options>)
  target_include_directories(${ARG_NAME}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
endfunction()

# txl_binary(NAME name SRCS main.cc ... DEPS target ...)
# A program in build/bin.
function(txl_binary)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SRCS})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} txl_options)
endfunction()

# What tests are compiled with, besides what they depend on.
function(txl_set_up_test NAME)
  target_link_libraries(${NAME} PRIVATE txl_options
    GTest::gmock GTest::gtest GTest::gtest_main)
  # Tests need to build fast, not to run fast; what they test keeps its level.
  target_compile_options(${NAME} PRIVATE
    $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
endfunction()

# GoogleTest's headers and what they include are a quarter of the time that a
# test takes to compile: read once for all of them. Most presets do without, so
# that a missing include is noticed.
function(txl_precompile_test_headers NAME)
  if(TXL_CUDA)
    return()
  endif()
  if(NOT TARGET txl_test_headers)
    set(source ${CMAKE_BINARY_DIR}/test_headers.cc)
    file(CONFIGURE OUTPUT ${source} CONTENT "int main() {}\n")
    add_executable(txl_test_headers EXCLUDE_FROM_ALL ${source})
    set_target_properties(txl_test_headers PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    txl_set_up_test(txl_test_headers)
    target_precompile_headers(txl_test_headers PRIVATE
      <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  target_precompile_headers(${NAME} REUSE_FROM txl_test_headers)
  # GCC forgets which lines of a precompiled header are a library's, and warns
  # of what it takes for overflows in std::string.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(overflows -Wno-array-bounds -Wno-stringop-overflow
      -Wno-stringop-overread)
    target_compile_options(${NAME} PRIVATE
      "$<$<COMPILE_LANGUAGE:CXX>:${overflows}>")
  endif()
endfunction()

# txl_test(NAME name SRCS a_test.cc ... DEPS target ... [LABELS label ...]
#          [WHOLE])
# A GoogleTest program in build/tests, every TEST registered with ctest. WHOLE:
# the program as one, for programs with LibTorch, which takes longer to load
# than most of their tests take to run.
# TXL_TEST_DATA in the environment of a test is the folder tests/. (One variable
# only: gtest_discover_tests takes a list of them apart.)
function(txl_test)
  cmake_parse_arguments(ARG "WHOLE" "NAME" "SRCS;DEPS;LABELS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SRCS})
  set_target_properties(${ARG_NAME} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS})
  txl_set_up_test(${ARG_NAME})
  txl_precompile_test_headers(${ARG_NAME})
  if(TARGET txl_tsan)
    target_link_libraries(${ARG_NAME} PRIVATE txl_tsan)
  endif()
  if(ARG_LABELS)
    set(labels LABELS "${ARG_LABELS}")
  endif()
  if(ARG_WHOLE)
    add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME} --gtest_brief=1)
    set_tests_properties(${ARG_NAME} PROPERTIES
      TIMEOUT 900 ${labels} ENVIRONMENT
        "TXL_TEST_DATA=${PROJECT_SOURCE_DIR}/tests")
    return()
  endif()
  gtest_discover_tests(${ARG_NAME}
    DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT 120 ${labels} ENVIRONMENT
      "TXL_TEST_DATA=${PROJECT_SOURCE_DIR}/tests")
endfunction()
