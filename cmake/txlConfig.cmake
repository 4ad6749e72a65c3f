# find_package(txl): txl::client, the client library. Its dependencies are those
# of the build that installed it, from the same system.
include(CMakeFindDependencyMacro)
find_dependency(Protobuf)
find_dependency(OpenSSL)
find_dependency(gRPC CONFIG)
find_dependency(absl CONFIG)
include(${CMAKE_CURRENT_LIST_DIR}/txlTargets.cmake)
