#include "tests/server/store/fault_vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <random>
#include <utility>

namespace txl {
namespace {

constexpr size_t kSector = 512;

struct Change {
  int64_t at = 0;
  std::string bytes;
  std::optional<int64_t> size;  // a truncation
};

void Apply(const Change& change, std::string& content) {
  if (change.size.has_value()) {
    content.resize(static_cast<size_t>(*change.size));
    return;
  }
  const auto at = static_cast<size_t>(change.at);
  content.resize(std::max(content.size(), at + change.bytes.size()));
  content.replace(at, change.bytes.size(), change.bytes);
}

struct DiskFile {
  std::string synced;
  std::vector<Change> unsynced;
};

struct State {
  std::mutex mutex;
  Fault fault;
  int64_t calls = 0;
  int64_t every = 0;  // 0: nothing is recorded
  std::mt19937_64 random;
  std::function<uint64_t()> acknowledged;
  std::map<std::string, DiskFile> files;
  std::vector<PowerLoss> losses;
};

State& Shared() {
  static State* const state = new State;
  return *state;
}

std::string NameOf(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// Changes that were not synced reach the disk, or don't, or in part.
std::string Reordered(const DiskFile& file, std::mt19937_64& random) {
  std::string content = file.synced;
  for (const Change& change : file.unsynced) {
    Change kept = change;
    switch (random() % 3) {
      case 0:
        continue;
      case 1:
        if (!kept.size.has_value()) {
          const size_t sectors = kept.bytes.size() / kSector + 1;
          kept.bytes.resize(std::min<size_t>(kept.bytes.size(),
                                             random() % sectors * kSector));
        }
        break;
      default:
        break;
    }
    Apply(kept, content);
  }
  return content;
}

// Under the mutex, after a call.
void Record(State& state) {
  if (state.every == 0 || state.calls % state.every != 0) return;
  PowerLoss loss;
  loss.call = state.calls;
  loss.acknowledged = state.acknowledged();
  for (const auto& [name, file] : state.files) {
    loss.synced[name] = file.synced;
    loss.reordered[name] = Reordered(file, state.random);
  }
  state.losses.push_back(std::move(loss));
}

// Counts a call; SQLITE_OK, or what it has to answer.
int Count(State& state) {
  ++state.calls;
  const Fault& fault = state.fault;
  const bool fails = fault.call > 0 && (fault.once ? state.calls == fault.call
                                                   : state.calls >= fault.call);
  return fails ? fault.code : SQLITE_OK;
}

struct File {
  sqlite3_file base;
  std::string* path;
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

sqlite3_file* Real(sqlite3_file* file) {
  return reinterpret_cast<File*>(file)->real();
}
const std::string& PathOf(sqlite3_file* file) {
  return *reinterpret_cast<File*>(file)->path;
}

int Close(sqlite3_file* f) {
  delete reinterpret_cast<File*>(f)->path;
  return Real(f)->pMethods->xClose(Real(f));
}
int Read(sqlite3_file* f, void* to, int n, sqlite3_int64 at) {
  return Real(f)->pMethods->xRead(Real(f), to, n, at);
}
// Counts a call, makes it, notes what it changed.
template <typename Call, typename Note>
int Changing(sqlite3_file* f, Call call, Note note) {
  State& state = Shared();
  std::lock_guard<std::mutex> lock(state.mutex);
  const int failure = Count(state);
  if (failure != SQLITE_OK) return failure;
  const int code = call(Real(f));
  if (state.every > 0 && code == SQLITE_OK) {
    note(state.files[NameOf(PathOf(f))]);
    Record(state);
  }
  return code;
}
int Write(sqlite3_file* f, const void* from, int n, sqlite3_int64 at) {
  return Changing(
      f,
      [&](sqlite3_file* real) {
        return real->pMethods->xWrite(real, from, n, at);
      },
      [&](DiskFile& file) {
        file.unsynced.push_back({at,
                                 std::string(static_cast<const char*>(from),
                                             static_cast<size_t>(n)),
                                 std::nullopt});
      });
}
int Truncate(sqlite3_file* f, sqlite3_int64 size) {
  return Changing(
      f,
      [&](sqlite3_file* real) { return real->pMethods->xTruncate(real, size); },
      [&](DiskFile& file) {
        file.unsynced.push_back({0, "", size});
      });
}
int Sync(sqlite3_file* f, int flags) {
  return Changing(
      f, [&](sqlite3_file* real) { return real->pMethods->xSync(real, flags); },
      [](DiskFile& file) {
        for (const Change& change : file.unsynced) Apply(change, file.synced);
        file.unsynced.clear();
      });
}
int Size(sqlite3_file* f, sqlite3_int64* size) {
  return Real(f)->pMethods->xFileSize(Real(f), size);
}
int Lock(sqlite3_file* f, int lock) {
  return Real(f)->pMethods->xLock(Real(f), lock);
}
int Unlock(sqlite3_file* f, int lock) {
  return Real(f)->pMethods->xUnlock(Real(f), lock);
}
int Reserved(sqlite3_file* f, int* out) {
  return Real(f)->pMethods->xCheckReservedLock(Real(f), out);
}
int Control(sqlite3_file* f, int op, void* argument) {
  return Real(f)->pMethods->xFileControl(Real(f), op, argument);
}
int SectorSize(sqlite3_file* f) {
  return Real(f)->pMethods->xSectorSize(Real(f));
}
int Traits(sqlite3_file* f) {
  return Real(f)->pMethods->xDeviceCharacteristics(Real(f));
}

// Version 1: no shared memory, which a connection alone does not need.
constexpr sqlite3_io_methods kMethods = {
    1,       Close,   Read,     Write,   Truncate,   Sync,   Size,
    Lock,    Unlock,  Reserved, Control, SectorSize, Traits, nullptr,
    nullptr, nullptr, nullptr,  nullptr, nullptr};

sqlite3_vfs* Default() {
  static sqlite3_vfs* const vfs = sqlite3_vfs_find(nullptr);
  return vfs;
}

int Open(sqlite3_vfs*, const char* name, sqlite3_file* f, int flags, int* out) {
  State& state = Shared();
  std::lock_guard<std::mutex> lock(state.mutex);
  f->pMethods = nullptr;
  if (Count(state) != SQLITE_OK) return SQLITE_CANTOPEN;
  const int code = Default()->xOpen(Default(), name, Real(f), flags, out);
  if (code != SQLITE_OK) return code;
  f->pMethods = &kMethods;
  reinterpret_cast<File*>(f)->path = new std::string(name ? name : "");
  if (state.every > 0) {
    std::ifstream found(PathOf(f), std::ios::binary);
    state.files.try_emplace(
        NameOf(PathOf(f)),
        DiskFile{std::string(std::istreambuf_iterator<char>(found), {}), {}});
  }
  return code;
}

int Delete(sqlite3_vfs*, const char* name, int sync) {
  State& state = Shared();
  std::lock_guard<std::mutex> lock(state.mutex);
  const int failure = Count(state);
  if (failure != SQLITE_OK) return SQLITE_IOERR_DELETE;
  const int code = Default()->xDelete(Default(), name, sync);
  if (state.every > 0 && code == SQLITE_OK) {
    state.files.erase(NameOf(name));
    Record(state);
  }
  return code;
}

}  // namespace

std::string FaultVfs() {
  static sqlite3_vfs vfs = [] {
    sqlite3_vfs made = *Default();
    made.szOsFile += static_cast<int>(sizeof(File));
    made.zName = "faults";
    made.pNext = nullptr;
    made.xOpen = Open;
    made.xDelete = Delete;
    return made;
  }();
  sqlite3_vfs_register(&vfs, 0);
  return vfs.zName;
}

void SetFault(const Fault& fault) {
  State& state = Shared();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.fault = fault;
  state.calls = 0;
}

int64_t CallsMade() {
  State& state = Shared();
  std::lock_guard<std::mutex> lock(state.mutex);
  return state.calls;
}

void RecordPowerLosses(int64_t every, uint64_t seed,
                       std::function<uint64_t()> acknowledged) {
  State& state = Shared();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.every = every;
  state.random.seed(seed);
  state.acknowledged = std::move(acknowledged);
  state.files.clear();
  state.losses.clear();
}

std::vector<PowerLoss> TakePowerLosses() {
  State& state = Shared();
  std::lock_guard<std::mutex> lock(state.mutex);
  state.every = 0;
  state.files.clear();
  return std::exchange(state.losses, {});
}

}  // namespace txl
