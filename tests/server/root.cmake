# Tests of server/*.cc: included by CMakeLists.txt.
txl_test(NAME txl_server_main_test WHOLE
  SRCS flags_test.cc server_test.cc torch_threads_test.cc watchdog_test.cc
  DEPS txl_server_main txl_fakes txl_scrape)
