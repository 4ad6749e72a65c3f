# Compiler settings: ccache, warnings, sanitizers. Own code only; libraries are
# included as system headers.
find_program(TXL_CCACHE ccache)
if(TXL_CCACHE)
  # Without this ccache keeps nothing that has a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros ${TXL_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${TXL_CCACHE})
endif()

# Most files wait for memory and for the network: they are compiled a quarter
# faster, and run as fast. What calculates says so (txl_library's FAST).
if(CMAKE_CXX_FLAGS_RELEASE STREQUAL "-O3 -DNDEBUG")
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
endif()

add_library(txl_options INTERFACE)
# As some libraries want it: then it is the same for all, as precompiled headers
# need it.
target_compile_options(txl_options INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-pthread>)
target_compile_options(txl_options INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall$<SEMICOLON>-Wextra>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION
   VERSION_LESS 13)
  # False alarms on "literal" + std::string (GCC bug 105651).
  target_compile_options(txl_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC looks for garbage from 1 GiB on, not from 128 MiB: a tenth less time.
  target_compile_options(txl_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1048576>)
endif()
if(TXL_WERROR)
  target_compile_options(txl_options INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:-Werror>
    $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings$<SEMICOLON>-Xcompiler=-Werror>)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(txl_options INTERFACE -Wthread-safety)
endif()
target_include_directories(txl_options INTERFACE ${PROJECT_SOURCE_DIR})

if(TXL_SANITIZE)
  # -fno-sanitize=vptr: it needs the type information of libraries' classes.
  set(flags -fsanitize=${TXL_SANITIZE} -fno-sanitize-recover=all
    -fno-sanitize=vptr -fno-omit-frame-pointer)
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${flags}>")
  add_link_options(-fsanitize=${TXL_SANITIZE})
endif()

# Libraries under fuzzing report which ways were taken; tests/fuzz links the
# fuzzer itself.
if(TXL_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined
    -fno-sanitize-recover=undefined -fno-sanitize=vptr
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
