#pragma once

// The last state image of each session as a file, so that a session that comes
// back need not be fed again. A cache: any file may be missing at any time.
//
//   FOLDER/images/ab/ab...ef/   one per session, named by the SHA-256 of its
//                               id; server/store/image_files.h
//   FOLDER/images/new/          files that are being written
//   FOLDER/quarantine/          damaged ones, the last few
//
// Several processes may share a folder, on a file system of one machine or of
// many: they take no locks, and what one does to files of a session is at worst
// a session whose tokens are fed again. No name is ever given to two files.

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "model/memory/state_image.h"
#include "server/base/byte_budget.h"
#include "server/base/task_thread.h"
#include "server/session/image_store.h"
#include "server/store/file_calls.h"
#include "server/store/image_file.h"

namespace txl {

// Which files there are, how large each is, and in which order they were used:
// what decides which go when there is no room.

// Not thread-safe.
class ImageIndex {
 public:
  // Bytes of all files.
  int64_t bytes() const { return bytes_; }
  // 0: there is none of this key.
  int64_t BytesOf(absl::string_view key) const;
  bool Contains(absl::string_view key) const { return files_.contains(key); }
  std::vector<std::string> Keys() const;

  // A file, in the place of an earlier one of this key. Uses are in the order
  // of `last_use`, whatever its unit.
  void Set(const std::string& key, int64_t bytes, int64_t last_use);
  // Nothing happens where there is none.
  void Erase(absl::string_view key);

  // The key of the file that was not used for the longest time, `spared` left
  // out; null: there is no other. Valid until the next change.
  const std::string* Oldest(absl::string_view spared) const;

 private:
  struct File {
    int64_t bytes = 0;
    int64_t last_use = 0;
  };

  absl::flat_hash_map<std::string, File> files_;
  std::set<std::pair<int64_t, std::string>> by_use_;
  int64_t bytes_ = 0;
};

// Thread-safe; calls wait for the disk. Errors of the disk name the path:
// ResourceExhausted where it is full, else Unavailable.
class ImageFiles {
 public:
  // Damaged files that are kept so that an operator can see what happened.
  static constexpr int kMostInQuarantine = 16;

  // Files that others left half-written go after so long.
  static constexpr absl::Duration kHalfWritten = absl::Hours(1);

  // `folder` is made where it is missing, its parent is not. All files together
  // have at most max_bytes. Files from before are counted by a thread of its
  // own, which also clears away what a crash left half-written: Get finds them
  // at once. Where other processes use the folder it looks again after each
  // `look_again`, and until then max_bytes holds for what it knows of;
  // infinite: there are none.
  static absl::StatusOr<std::unique_ptr<ImageFiles>> Open(
      const std::string& folder, int64_t max_bytes,
      absl::Duration look_again = absl::InfiniteDuration());
  // Waits for the calls of the scan, not for its end.
  ~ImageFiles();

  // An image of the session, on stable storage; those of earlier positions are
  // gone then, and stay until then. The sessions that were not used for the
  // longest time make room. `ids_digest`: 32 bytes. Errors: also
  // ResourceExhausted for an image larger than max_bytes, InvalidArgument for a
  // digest of another size or a head that no server makes.
  absl::Status Put(absl::string_view session_id, absl::string_view ids_digest,
                   const StateImage& image) ABSL_LOCKS_EXCLUDED(mutex_);

  // The image of the largest position; an earlier one where it cannot be taken.
  // Errors: NotFound (there is none, or only
  // ones of other versions of this program, which stay); where none was taken
  // also ResourceExhausted (its data has more than most_bytes; it stays),
  // DataLoss (it was damaged; it is in quarantine now).
  absl::StatusOr<StoredImage> Get(absl::string_view session_id,
                                  int64_t most_bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // There is none from now on; also OK where there was none.
  absl::Status Remove(absl::string_view session_id) ABSL_LOCKS_EXCLUDED(mutex_);

  // Bytes of all files known so far, and of those being written. At most
  // max_bytes once the scan is done, except for a file that is just being
  // replaced and files that other processes have written since.
  int64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Until all files from before are counted.
  void WaitForScan() const { scanned_.WaitForNotification(); }

 private:
  ImageFiles(const std::string& folder, int64_t max_bytes,
             absl::Duration look_again, std::string run);

  // Folder of the session with this key (KeyOf its id); the one above it.
  std::string FolderOf(const std::string& key) const;
  std::string PrefixOf(const std::string& key) const;
  absl::Status WriteNew(const std::string& path, const std::string& head,
                        const StateImage& image, int64_t use);
  absl::Status MoveIn(const std::string& from, const std::string& key,
                      int64_t position, const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<StoredImage> Read(const std::string& key,
                                   const std::string& path,
                                   absl::string_view session_id,
                                   int64_t most_bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Discard(const std::string& key, const std::string& path,
               const FileDescriptor& file) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteUse(const std::string& key, const std::string& path,
               const FileDescriptor& file) ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t NextUse() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What the index says of a session is what there is.
  void Count(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RemoveAll(const std::string& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MakeRoom(int64_t needed, absl::string_view spared)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TrimQuarantine() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ScanLoop() ABSL_LOCKS_EXCLUDED(mutex_);
  void Scan() ABSL_LOCKS_EXCLUDED(mutex_);
  void RemoveTemporaries();
  void ScanPrefix(const std::string& prefix) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string images_;
  const std::string new_;
  const std::string quarantine_;
  const int64_t max_bytes_;
  const absl::Duration look_again_;
  const std::string run_;  // begins the names of this process's new files
  std::atomic<uint64_t> next_new_{0};
  absl::Notification stopping_;
  absl::Notification scanned_;

  // Held while files get and lose their names, so that the index says what is
  // there; never while one is read, written or synced.
  mutable absl::Mutex mutex_;
  ImageIndex index_ ABSL_GUARDED_BY(mutex_);  // by session
  int64_t being_written_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t last_use_ ABSL_GUARDED_BY(mutex_) = 0;  // Unix nanoseconds

  std::thread scan_;  // last: Scan uses the members above
};

// The image store on files: reads and writes by threads of its own, so that
// no caller that has or wants an image waits for the disk.

struct ImageKeeperOptions {
  int threads = 2;
  // Maximum bytes of images that wait to be written; more are left out.
  int64_t most_waiting_bytes = int64_t{256} << 20;
  // Maximum bytes of one image that is read.
  int64_t most_image_bytes = int64_t{1} << 30;
};

class ImageKeeper final : public ImageStore {
 public:
  ImageKeeper(std::unique_ptr<ImageFiles> files, ImageKeeperOptions options);

  void Put(const std::string& session_id, TokenSlice ids,
           std::shared_ptr<const StateImage> image) override;
  void Get(const std::string& session_id,
           std::function<void(std::optional<KeptImage>)> done) override;
  void Remove(const std::string& session_id) override;
  int64_t Bytes() const override { return files_->bytes(); }
  void Flush() override;

 private:
  // Calls of one session run on one thread, so in their order.
  TaskThread& ThreadOf(const std::string& session_id);

  const ImageKeeperOptions options_;
  const std::unique_ptr<ImageFiles> files_;
  ByteBudget waiting_;
  std::vector<std::unique_ptr<TaskThread>> threads_;  // last
};

// The folder with the state images of one session. Its files are written aside
// and moved in under a name that says what they hold. So no file is ever
// changed or written twice in different ways, whichever process writes there:
//
//   POSITION-HEAD.txlm   position of the state; the first 128 bits of the
//                        SHA-256 of the file's head (server/store/image_file.h)

inline constexpr absl::string_view kImageSuffix = ".txlm";

// File name of an image with this head at `position` >= 0.
std::string ImageNameOf(int64_t position, absl::string_view head);

struct ImageEntry {
  std::string path;
  int64_t position = 0;
  int64_t bytes = 0;
  int64_t use = 0;  // of its time of change, Unix nanoseconds
};

// The images there, the largest position first; files of other names are not
// images. Nothing where the folder is missing or cannot be read.
std::vector<ImageEntry> ListImages(const std::string& folder);

// All entries of a folder; those that can be read.
std::vector<std::filesystem::directory_entry> EntriesOf(
    const std::string& folder);

// A file's time of change is that of its last use, also for other processes.
// 0: the file is from before 1970.
int64_t UseOf(const struct stat& file);
void SetUse(int fd, int64_t use);

}  // namespace txl
