# txl-server: included by server/CMakeLists.txt. The library is what the program
# is made of, so that tests can start a whole server.
find_package(tomlplusplus CONFIG REQUIRED)
txl_library(NAME txl_server_main
  SRCS admin_listener.cc flag_table.cc flags.cc keys_command.cc
    listen_address.cc memory_budgets.cc record_files.cc serve_command.cc
    server.cc signals.cc start_up.cc stored_sessions.cc
    tenants_watch.cc watchdog.cc
  DEPS txl_server_rpc txl_server_http txl_server_tls txl_server_exporter
    txl_server_engine txl_server_scheduler txl_server_session txl_server_store
    txl_server_store_command txl_server_store_redis txl_server_access
    txl_server_metrics txl_server_quota txl_server_base
    txl_model_checkpoint txl_program txl_torch CLI11::CLI11 tomlplusplus::tomlplusplus
    absl::cleanup absl::status absl::statusor absl::strings
    absl::synchronization absl::time Threads::Threads)
txl_compile_quickly(txl_server_main)
txl_binary(NAME txl-server SRCS main.cc DEPS txl_server_main)
