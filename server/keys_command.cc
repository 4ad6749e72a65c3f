#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "model/base/status_macros.h"
#include "program/command_line.h"
#include "program/flag_checks.h"
#include "program/output_file.h"
#include "server/access/keys_file.h"
#include "server/base/digest.h"
#include "server/base/text_file.h"
#include "server/commands.h"
#include "server/signals.h"

namespace txl {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr absl::Duration kLongestLife = absl::Hours(24 * 365 * 100);

struct KeysFlags {
  std::string keys, name, tenant, role, expires_in;
  int (*run)(const KeysFlags&) = nullptr;  // the command that was called
};

int KeysFailed(const absl::Status& status) {
  std::fprintf(stderr, "txl-server keys: %s\n",
               std::string(status.message()).c_str());
  return kFailed;
}

std::string Shown(absl::Time expires) {
  return expires == absl::InfiniteFuture()
             ? "never"
             : absl::FormatTime(absl::RFC3339_sec, expires,
                                absl::UTCTimeZone());
}

absl::Status FlushOutput() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
    return absl::OkStatus();
  }
  return absl::UnavailableError("standard output cannot be written");
}

// Every key that was there is there still, whoever writes at the same time:
// commands take turns, by a lock on the folder, which leaves nothing behind.
// `may_be_new`: there may be no file yet.
absl::Status Change(
    const std::string& path, bool may_be_new,
    const std::function<absl::Status(std::vector<KeyEntry>&)>& change) {
  std::string folder = std::filesystem::path(WithoutLinks(path)).parent_path();
  if (folder.empty()) folder = ".";
  const int lock = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0) return absl::ErrnoToStatus(errno, folder);
  const absl::Cleanup close_it = [lock] { close(lock); };
  if (flock(lock, LOCK_EX) != 0) return absl::ErrnoToStatus(errno, folder);
  absl::StatusOr<std::vector<KeyEntry>> keys = ReadKeysFile(path);
  if (may_be_new && absl::IsNotFound(keys.status())) keys.emplace();
  if (!keys.ok()) return keys.status();
  TXL_RETURN_IF_ERROR(change(*keys));
  return WriteKeysFile(path, *keys);
}

std::vector<KeyEntry>::iterator Find(std::vector<KeyEntry>& keys,
                                     const std::string& name) {
  return std::find_if(keys.begin(), keys.end(), [&](const KeyEntry& key) {
    return key.caller.name == name;
  });
}

absl::StatusOr<KeyEntry> EntryOf(const KeysFlags& flags) {
  KeyEntry entry;
  TXL_RETURN_IF_ERROR(CheckAccessName("--name", flags.name));
  TXL_RETURN_IF_ERROR(CheckAccessName("--tenant", flags.tenant));
  entry.caller = {flags.tenant, flags.name, *ParseRole(flags.role)};
  absl::Duration life;
  if (flags.expires_in.empty()) return entry;
  if (!absl::ParseDuration(flags.expires_in, &life) ||
      life <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--expires-in: \"", flags.expires_in, "\" is not a duration like 1h"));
  }
  if (life > kLongestLife) {
    return absl::InvalidArgumentError(
        absl::StrCat("--expires-in: ", flags.expires_in,
                     " is more than 100 years; left out: never"));
  }
  entry.expires = absl::Now() + life;
  return entry;
}

int Add(const KeysFlags& flags) {
  absl::StatusOr<KeyEntry> entry = EntryOf(flags);
  if (!entry.ok()) {
    KeysFailed(entry.status());
    return kExitUsage;
  }
  const absl::StatusOr<std::string> key = NewKey();
  if (!key.ok()) return KeysFailed(key.status());
  entry->digest = Sha256Of(*key);
  const absl::Status added =
      Change(flags.keys, /*may_be_new=*/true,
             [&](std::vector<KeyEntry>& keys) -> absl::Status {
               if (Find(keys, flags.name) != keys.end()) {
                 return absl::AlreadyExistsError(
                     absl::StrCat(flags.keys, ": there is a key \"", flags.name,
                                  "\" already; revoke it first"));
               }
               keys.push_back(*entry);
               // Printed first, so that the file has no key that was not shown.
               std::printf("key %s of tenant %s, role %s, expires %s: %s\n",
                           flags.name.c_str(), flags.tenant.c_str(),
                           flags.role.c_str(), Shown(entry->expires).c_str(),
                           key->c_str());
               return FlushOutput();
             });
  return added.ok() ? kDone : KeysFailed(added);
}

int List(const KeysFlags& flags) {
  const absl::StatusOr<std::vector<KeyEntry>> keys = ReadKeysFile(flags.keys);
  if (!keys.ok()) return KeysFailed(keys.status());
  std::printf("name\ttenant\trole\texpires\n");
  for (const KeyEntry& key : *keys) {
    std::printf("%s\t%s\t%s\t%s\n", key.caller.name.c_str(),
                key.caller.tenant.c_str(), RoleName(key.caller.role),
                Shown(key.expires).c_str());
  }
  return kDone;
}

int Revoke(const KeysFlags& flags) {
  const absl::Status revoked =
      Change(flags.keys, /*may_be_new=*/false,
             [&](std::vector<KeyEntry>& keys) -> absl::Status {
               const auto found = Find(keys, flags.name);
               if (found == keys.end()) {
                 return absl::NotFoundError(absl::StrCat(
                     flags.keys, ": there is no key \"", flags.name, "\""));
               }
               keys.erase(found);
               return absl::OkStatus();
             });
  if (!revoked.ok()) return KeysFailed(revoked);
  std::printf("revoked %s\n", flags.name.c_str());
  return kDone;
}

// What was printed is only worth its exit code where it arrived.
int Exit(int code) {
  if (code != kDone) return code;
  const absl::Status flushed = FlushOutput();
  return flushed.ok() ? code : KeysFailed(flushed);
}

CLI::App* AddCommand(CLI::App& program, const std::string& name,
                     const std::string& help, int (*run)(const KeysFlags&),
                     KeysFlags* flags) {
  CLI::App* const command = program.add_subcommand(name, help);
  command->callback([run, flags] { flags->run = run; });
  command->add_option("--keys", flags->keys, "File of keys")
      ->required()
      ->envname("TXL_KEYS")
      ->type_name("FILE");
  return command;
}

}  // namespace

bool IsKeysCommand(const std::vector<std::string>& arguments) {
  return !arguments.empty() && arguments[0] == "keys";
}

int RunKeysCommand(std::vector<std::string> arguments) {
  KeysFlags flags;
  CLI::App program(
      "Manages the keys of a server with --keys FILE, which reads a changed "
      "file by itself.",
      "txl-server keys");
  ReadOwnVariables(program);
  program.require_subcommand(1);
  std::vector<std::string> roles;
  for (const Role role : kAllRoles) roles.emplace_back(RoleName(role));
  CLI::App* const add = AddCommand(
      program, "add", "Create a key and print it, once", Add, &flags);
  add->add_option("--name", flags.name, "Name of the key")->required();
  add->add_option("--tenant", flags.tenant, "Tenant whose sessions it may use")
      ->required();
  add->add_option("--role", flags.role, "Role of the key")
      ->required()
      ->transform(OneOf(roles));
  add->add_option("--expires-in", flags.expires_in,
                  "Life of the key, like 1h; if absent: no end");
  AddCommand(program, "list", "List the names of the keys", List, &flags);
  CLI::App* const revoke = AddCommand(
      program, "revoke", "Revoke a key within seconds", Revoke, &flags);
  revoke->add_option("--name", flags.name, "Name of the key")->required();
  std::vector<std::string> rest(arguments.rbegin(), arguments.rend() - 1);
  try {
    program.parse(std::move(rest));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help
      program.exit(error);
      return Exit(kDone);
    }
    KeysFailed(absl::InvalidArgumentError(UsageError(program, error)));
    return static_cast<int>(kExitUsage);
  }
  return Exit(flags.run(flags));
}

absl::StatusOr<std::string> ReadKeyFile(const std::string& path) {
  absl::StatusOr<std::string> key =
      ReadSecretFile(path, {kLeastKeyBytes, kMostKeyBytes, "a key"});
  if (key.ok()) return key;
  return absl::Status(
      key.status().code(),
      absl::StrCat("--export-key-file: ", key.status().message()));
}

}  // namespace txl
