# Third-party libraries; docs/DEPENDENCIES.md says what each is for.
find_package(PkgConfig REQUIRED)
if(TXL_SERVER OR TXL_CONVERT)
  find_package(Protobuf REQUIRED)
endif()
if(TXL_SERVER)
  find_package(gRPC CONFIG REQUIRED)
  pkg_check_modules(PROMETHEUS REQUIRED IMPORTED_TARGET prometheus-cpp-pull)
endif()
find_package(absl CONFIG REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(nlohmann_json 3 REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)
find_package(ZLIB REQUIRED)
pkg_check_modules(HIGHWAY REQUIRED IMPORTED_TARGET libhwy)

# LibTorch: from the Python environment that deploy/setup.sh makes, or from
# -DCMAKE_PREFIX_PATH=..., its root or what torch.utils.cmake_prefix_path says.
# Its own CMake package is left alone: that of a LibTorch with CUDA asks for the
# development files of all CUDA libraries, and sets CUDA's flags for everybody.
file(GLOB TXL_SITE_PACKAGES
  ${PROJECT_SOURCE_DIR}/.deps/venv/lib/python3*/site-packages)
foreach(prefix ${CMAKE_PREFIX_PATH})
  list(APPEND torch_roots ${prefix} ${prefix}/../..)
endforeach()
list(APPEND torch_roots ${TXL_SITE_PACKAGES}/torch)
find_path(TXL_TORCH_INCLUDE torch/csrc/api/include/torch/torch.h REQUIRED
  HINTS ${torch_roots} PATH_SUFFIXES include)
cmake_path(GET TXL_TORCH_INCLUDE PARENT_PATH torch_root)
message(STATUS "LibTorch: ${torch_root}")

# It carries an old copy of google/protobuf headers: its folders must be
# searched after the system's.
add_library(txl_torch INTERFACE)
foreach(dir ${TXL_TORCH_INCLUDE} ${TXL_TORCH_INCLUDE}/torch/csrc/api/include)
  target_compile_options(txl_torch INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-idirafter ${dir}>")
endforeach()
# Includes name the operators that they need; all of them take 6 s to read.
target_compile_definitions(txl_torch INTERFACE AT_PER_OPERATOR_HEADERS)
foreach(name torch torch_cpu c10)
  find_library(TXL_LIB_${name} ${name} REQUIRED
    HINTS ${torch_root}/lib NO_DEFAULT_PATH)
endforeach()
# Nothing refers to libtorch.so, which loads what LibTorch has for devices.
target_link_libraries(txl_torch INTERFACE
  "-Wl,--no-as-needed,\"${TXL_LIB_torch}\" -Wl,--as-needed"
  ${TXL_LIB_torch} ${TXL_LIB_torch_cpu} ${TXL_LIB_c10} Threads::Threads)
if(EXISTS ${torch_root}/lib/libtorch_cuda.so)
  # The libraries of CUDA that it needs are found when a program starts.
  target_link_options(txl_torch INTERFACE
    -Wl,--unresolved-symbols=ignore-in-shared-libs)
endif()
