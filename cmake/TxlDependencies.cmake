# Third-party libraries; docs/DEPENDENCIES.md says what each is for.
# Protobuf comes before Torch: Torch's package would otherwise define a dummy
# protobuf target and the link would lose libprotobuf.
find_package(Protobuf REQUIRED)
find_package(PkgConfig REQUIRED)
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

# The Python environment that deploy/setup.sh makes; it holds LibTorch's wheel
# and the google.rpc protos. A LibTorch elsewhere: -DCMAKE_PREFIX_PATH=...
file(GLOB TXL_SITE_PACKAGES
  ${PROJECT_SOURCE_DIR}/.deps/venv/lib/python3*/site-packages)
if(TXL_SITE_PACKAGES)
  list(APPEND CMAKE_PREFIX_PATH ${TXL_SITE_PACKAGES}/torch/share/cmake)
endif()
find_package(Torch REQUIRED)

# LibTorch carries an old copy of google/protobuf headers: its folders must be
# searched after the system's.
foreach(target torch torch_cpu torch_cuda c10 c10_cuda torch_library)
  if(TARGET ${target})
    set_target_properties(${target} PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "" INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "")
  endif()
endforeach()
add_library(txl_torch INTERFACE)
foreach(dir ${TORCH_INCLUDE_DIRS})
  target_compile_options(txl_torch INTERFACE "SHELL:-idirafter ${dir}")
endforeach()
target_link_libraries(txl_torch INTERFACE ${TORCH_LIBRARIES})
