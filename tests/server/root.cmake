# Tests of server/*.cc: included by CMakeLists.txt.
txl_test(NAME txl_server_main_test WHOLE
  SRCS admin_listener_test.cc exposure_test.cc flags_test.cc format_flags_test.cc installed_models_test.cc key_file_test.cc
    listen_address_test.cc listener_probe_test.cc listener_watch_test.cc
    memory_budgets_test.cc open_files_test.cc record_files_test.cc server_test.cc setting_names_test.cc speculation_test.cc
    tenant_sessions_test.cc torch_threads_test.cc unix_socket_test.cc watchdog_test.cc
  DEPS txl_server_main txl_fakes txl_scrape txl_test_authority)
