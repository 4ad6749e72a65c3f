#pragma once

// SQLite's own file system with faults: calls that fail, and what a disk would
// have if the power went.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace txl {

// The name of the file system, of which there is one. Its calls that change
// something are counted: open, write, sync, truncate, delete.
std::string FaultVfs();

struct Fault {
  int64_t call = 0;   // counted from 1; 0: never
  int code = 0;       // SQLite's
  bool once = false;  // the calls behind it work again
};
// From now on; counts anew.
void SetFault(const Fault& fault);
int64_t CallsMade();

// What a disk has: files by their name without the folder.
using DiskFiles = std::map<std::string, std::string>;

struct PowerLoss {
  int64_t call = 0;  // after this one
  uint64_t acknowledged = 0;
  DiskFiles synced;     // what was synced and nothing else
  DiskFiles reordered;  // also some of the other writes, whole or in part
};
// Notes what the disk has after each `every`th call, and what `acknowledged`
// says then. What files have when they are opened first is on the disk.
void RecordPowerLosses(int64_t every, uint64_t seed,
                       std::function<uint64_t()> acknowledged);
// What was noted; ends the recording.
std::vector<PowerLoss> TakePowerLosses();

}  // namespace txl
