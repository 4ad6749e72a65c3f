# Tests of server/*.cc: included by CMakeLists.txt.
# docs/settings.md is made from the settings and kept up with them.
txl_library(NAME txl_settings_reference SRCS settings_reference.cc
  DEPS txl_server_main txl_program CLI11::CLI11 absl::strings)
txl_binary(NAME txl-settings-reference SRCS settings_reference_main.cc
  DEPS txl_settings_reference)
txl_test(NAME txl_server_main_test WHOLE
  SRCS admin_listener_test.cc flags_test.cc installed_models_test.cc key_file_test.cc
    keys_command_test.cc listen_address_test.cc listener_watch_test.cc
    memory_budgets_test.cc open_files_test.cc record_files_test.cc server_test.cc flag_table_test.cc speculation_test.cc
    tenant_sessions_test.cc tenants_watch_test.cc warm_up_test.cc watchdog_test.cc
  DEPS txl_server_main txl_settings_reference txl_fakes txl_scrape txl_test_authority)
