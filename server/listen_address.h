#pragma once

// Addresses that the flags listen on.

#include <string>

namespace txl {

// What --admin-listen is where nobody says: the socket admin.sock in --data-dir
// where there is one, else "off".
inline constexpr char kAdminAuto[] = "auto";

// "HOST:PORT", of IPv6 in brackets, or "unix:PATH"; else what is wrong.
std::string CheckListen(const std::string& listen);
// These, "auto", "off" (in any case) or nothing; else what is wrong.
std::string CheckAdminListen(const std::string& listen);

// Where administration listens by --admin-listen and --data-dir; empty:
// nowhere.
std::string AdminAddress(const std::string& listen,
                         const std::string& data_dir);

}  // namespace txl
