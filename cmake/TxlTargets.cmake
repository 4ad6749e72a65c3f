# One target per folder and one test program per tests/ folder.
include(GoogleTest)
include(TxlPrecompiled)

# txl_unite(target COUNT): its files are compiled together, COUNT at a time, so
# that what they include is read once. Presets other than release compile each by
# itself, so that a file still says what it needs.
function(txl_unite NAME COUNT)
  if(NOT TXL_UNITY)
    return()
  endif()
  set_target_properties(${NAME} PROPERTIES
    UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${COUNT})
  # Newer versions of CMake would unite kernels, too, which name their parts
  # alike.
  get_target_property(sources ${NAME} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cu$")
  if(sources)
    set_source_files_properties(${sources} PROPERTIES
      SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  # GCC takes a unit that CMake made for a header: its types of unnamed
  # namespaces are no mistake.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${NAME} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
endfunction()

# txl_library(NAME name SRCS a.cc ... DEPS target ... [PRECOMPILED kind]
#             [APART] [FAST])
# A static library with the project's compile options. PRECOMPILED: which
# headers are read once for many files, of cmake/TxlPrecompiled.cmake; default:
# plain. APART: each file is compiled by itself. FAST: it calculates, and is
# optimized as far as the compiler can; such code shares no precompiled header.
function(txl_library)
  cmake_parse_arguments(ARG "APART;FAST" "NAME;PRECOMPILED" "SRCS;DEPS" ${ARGN})
  if(ARG_FAST)
    set(ARG_PRECOMPILED none)
  elseif(NOT ARG_PRECOMPILED)
    set(ARG_PRECOMPILED plain)
  endif()
  add_library(${ARG_NAME} STATIC ${ARG_SRCS})
  target_link_libraries(${ARG_NAME} PUBLIC ${ARG_DEPS}
    PRIVATE $<BUILD_INTERFACE:txl_options>)
  target_include_directories(${ARG_NAME}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  txl_precompile(${ARG_NAME} ${ARG_PRECOMPILED})
  if(ARG_FAST)
    target_compile_options(${ARG_NAME} PRIVATE
      $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O3>)
  endif()
  if(NOT ARG_APART)
    txl_unite(${ARG_NAME} 24)
  endif()
endfunction()

# txl_binary(NAME name SRCS main.cc ... DEPS target ...)
# A program in build/bin; what it calculates stands in its libraries.
function(txl_binary)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SRCS})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} txl_options)
  txl_compile_quickly(${ARG_NAME})
  txl_unite(${ARG_NAME} 24)
endfunction()

# txl_test(NAME name SRCS a_test.cc ... DEPS target ... [LABELS label ...]
#          [WHOLE] [FAST] [PRECOMPILED kind])
# A GoogleTest program in build/tests, every TEST registered with ctest. WHOLE:
# the program as one, for programs with LibTorch, which takes longer to load
# than most of their tests take to run. FAST: its own code calculates enough to
# be optimized.
# TXL_TEST_DATA in the environment of a test is the folder tests/. (One variable
# only: gtest_discover_tests takes a list of them apart.)
function(txl_test)
  cmake_parse_arguments(ARG "WHOLE;FAST" "NAME;PRECOMPILED" "SRCS;DEPS;LABELS"
    ${ARGN})
  set(kind TEST)
  if(ARG_FAST)
    set(kind FAST_TEST)
  endif()
  if(NOT ARG_PRECOMPILED)
    set(ARG_PRECOMPILED plain)
  endif()
  add_executable(${ARG_NAME} ${ARG_SRCS})
  set_target_properties(${ARG_NAME} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} txl_options
    GTest::gmock GTest::gtest GTest::gtest_main)
  # What is tested keeps its level.
  txl_compile_quickly(${ARG_NAME} ${kind})
  txl_precompile(${ARG_NAME} ${ARG_PRECOMPILED} ${kind})
  txl_unite(${ARG_NAME} 16)
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
