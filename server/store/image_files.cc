#include "server/store/image_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "model/base/status_macros.h"
#include "server/base/digest.h"
#include "server/session/session_id.h"
#include "server/store/image_folder.h"

namespace txl {
namespace {

std::string KeyOf(absl::string_view session_id) {
  return absl::BytesToHexString(Sha256Of(session_id));
}

// Whether a file of this name under this prefix is of a session.
bool IsKey(absl::string_view prefix, absl::string_view name) {
  return name.size() == 2 * kDigestBytes && absl::StartsWith(name, prefix) &&
         name.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

// Whether `path` still names the open file.
bool IsNamed(const std::string& path, const FileDescriptor& file) {
  struct stat named;
  struct stat open;
  return ::lstat(path.c_str(), &named) == 0 && ::fstat(file.fd(), &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

// Without the folder there is nothing to sync.
absl::Status SyncIfThere(const std::string& folder) {
  const absl::Status synced = SyncFolder(folder);
  struct stat found;
  const bool gone =
      !synced.ok() && ::stat(folder.c_str(), &found) != 0 && errno == ENOENT;
  return gone ? absl::OkStatus() : synced;
}

// The folder may go while nothing is in it.
absl::Status RenameInto(const std::string& from, const std::string& folder,
                        const std::string& path) {
  constexpr int kTries = 10;
  for (int i = 1;; ++i) {
    (void)::mkdir(folder.c_str(), S_IRWXU);
    if (::rename(from.c_str(), path.c_str()) == 0) return absl::OkStatus();
    if (errno != ENOENT || i == kTries) {
      return FileError(path, "rename a new file to it", errno);
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ImageFiles>> ImageFiles::Open(
    const std::string& folder, int64_t max_bytes, absl::Duration look_again) {
  TXL_ASSIGN_OR_RETURN(std::string run, RandomSessionId());
  std::unique_ptr<ImageFiles> files(
      new ImageFiles(folder, max_bytes, look_again, std::move(run)));
  for (const std::string& path :
       {folder, files->images_, files->new_, files->quarantine_}) {
    TXL_RETURN_IF_ERROR(MakeFolder(path));
  }
  files->scan_ = std::thread([&files = *files] { files.ScanLoop(); });
  return files;
}

ImageFiles::ImageFiles(const std::string& folder, int64_t max_bytes,
                       absl::Duration look_again, std::string run)
    : images_(absl::StrCat(folder, "/images")),
      new_(absl::StrCat(images_, "/new")),
      quarantine_(absl::StrCat(folder, "/quarantine")),
      max_bytes_(max_bytes),
      look_again_(look_again),
      run_(std::move(run)) {}

ImageFiles::~ImageFiles() {
  stopping_.Notify();
  if (scan_.joinable()) scan_.join();
}

std::string ImageFiles::PrefixOf(const std::string& key) const {
  return absl::StrCat(images_, "/", key.substr(0, 2));
}

std::string ImageFiles::FolderOf(const std::string& key) const {
  return absl::StrCat(PrefixOf(key), "/", key);
}

absl::Status ImageFiles::Put(absl::string_view session_id,
                             absl::string_view ids_digest,
                             const StateImage& image) {
  TXL_ASSIGN_OR_RETURN(const std::string head,
                       EncodeImageHead(session_id, ids_digest, image));
  const std::string key = KeyOf(session_id);
  const int64_t bytes = ImageFileBytes(head, image);
  if (bytes > max_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat("a state image of ", bytes,
                                                     " bytes; all may have ",
                                                     max_bytes_, " together"));
  }
  int64_t use = 0;
  {
    absl::MutexLock lock(&mutex_);
    MakeRoom(bytes, key);
    being_written_bytes_ += bytes;
    use = NextUse();
  }
  const std::string path = absl::StrCat(new_, "/", run_, "-", next_new_++);
  absl::Status status = WriteNew(path, head, image, use);
  if (status.ok()) status = MakeFolder(PrefixOf(key));
  {
    absl::MutexLock lock(&mutex_);
    being_written_bytes_ -= bytes;
    if (status.ok()) {
      status =
          MoveIn(path, key, image.position, ImageNameOf(image.position, head));
    }
  }
  if (status.ok()) {
    TXL_RETURN_IF_ERROR(SyncIfThere(FolderOf(key)));
    return SyncIfThere(PrefixOf(key));
  }
  ::unlink(path.c_str());
  return status;
}

absl::Status ImageFiles::WriteNew(const std::string& path,
                                  const std::string& head,
                                  const StateImage& image, int64_t use) {
  const FileDescriptor file(::open(path.c_str(),
                                   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                                   S_IRUSR | S_IWUSR));
  if (!file.is_open()) return FileError(path, "make the file", errno);
  TXL_RETURN_IF_ERROR(WriteImageFile(file.fd(), path, head, image));
  SetUse(file.fd(), use);
  if (::fsync(file.fd()) != 0) return FileError(path, "sync", errno);
  return absl::OkStatus();
}

absl::Status ImageFiles::MoveIn(const std::string& from, const std::string& key,
                                int64_t position, const std::string& name) {
  const std::string folder = FolderOf(key);
  const std::string path = absl::StrCat(folder, "/", name);
  // Over the same image, where it was written before.
  TXL_RETURN_IF_ERROR(RenameInto(from, folder, path));
  for (const ImageEntry& image : ListImages(folder)) {
    if (image.position < position) ::unlink(image.path.c_str());
  }
  Count(key);
  return absl::OkStatus();
}

absl::StatusOr<StoredImage> ImageFiles::Get(absl::string_view session_id,
                                            int64_t most_bytes) {
  const std::string key = KeyOf(session_id);
  absl::Status none =
      absl::NotFoundError("there is no state image of this session");
  for (const ImageEntry& image : ListImages(FolderOf(key))) {
    absl::StatusOr<StoredImage> stored =
        Read(key, image.path, session_id, most_bytes);
    if (stored.ok()) return stored;
    if (!absl::IsNotFound(stored.status())) none = stored.status();
  }
  return none;
}

// NotFound: it is gone, or of another version.
absl::StatusOr<StoredImage> ImageFiles::Read(const std::string& key,
                                             const std::string& path,
                                             absl::string_view session_id,
                                             int64_t most_bytes) {
  // Without waiting, should it be a pipe.
  const FileDescriptor file(
      ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.is_open()) {
    if (errno == ENOENT) return absl::NotFoundError(path);
    return FileError(path, "open", errno);
  }
  absl::StatusOr<StoredImage> stored =
      ReadImageFile(file.fd(), path, session_id, most_bytes);
  if (stored.ok()) {
    NoteUse(key, path, file);
  } else if (absl::IsDataLoss(stored.status())) {
    Discard(key, path, file);
  } else if (absl::IsFailedPrecondition(stored.status())) {
    return absl::NotFoundError(stored.status().message());
  }
  return stored;
}

absl::Status ImageFiles::Remove(absl::string_view session_id) {
  const std::string key = KeyOf(session_id);
  {
    absl::MutexLock lock(&mutex_);
    TXL_RETURN_IF_ERROR(RemoveAll(key));
  }
  return SyncIfThere(PrefixOf(key));
}

int64_t ImageFiles::bytes() const {
  absl::MutexLock lock(&mutex_);
  return index_.bytes() + being_written_bytes_;
}

// Uses of this process follow each other even where the clock stands or goes
// back.
int64_t ImageFiles::NextUse() {
  last_use_ = std::max(last_use_ + 1, absl::GetCurrentTimeNanos());
  return last_use_;
}

void ImageFiles::Count(const std::string& key) {
  int64_t bytes = 0;
  int64_t use = 0;
  for (const ImageEntry& image : ListImages(FolderOf(key))) {
    bytes += image.bytes;
    use = std::max(use, image.use);
  }
  index_.Erase(key);
  if (bytes > 0) index_.Set(key, bytes, use);
  last_use_ = std::max(last_use_, use);
}

absl::Status ImageFiles::RemoveAll(const std::string& key) {
  absl::Status status;
  for (const ImageEntry& image : ListImages(FolderOf(key))) {
    if (::unlink(image.path.c_str()) != 0 && errno != ENOENT) {
      status = FileError(image.path, "remove", errno);
    }
  }
  ::rmdir(FolderOf(key).c_str());  // in vain where something is left in it
  Count(key);
  return status;
}

// Removes the oldest files until `needed` more bytes may be written. The spared
// session's are about to be replaced.
void ImageFiles::MakeRoom(int64_t needed, absl::string_view spared) {
  while (index_.bytes() - index_.BytesOf(spared) + being_written_bytes_ +
             needed >
         max_bytes_) {
    const std::string* oldest = index_.Oldest(spared);
    if (oldest == nullptr) return;
    const std::string key = *oldest;
    // Others may have used or removed it since it was counted.
    Count(key);
    oldest = index_.Oldest(spared);
    if (oldest == nullptr || *oldest != key) continue;
    (void)RemoveAll(key);
    index_.Erase(key);  // also where it stays: it must not be tried for ever
  }
}

// The file has just been read: it may have another name or none by now.
void ImageFiles::NoteUse(const std::string& key, const std::string& path,
                         const FileDescriptor& file) {
  absl::MutexLock lock(&mutex_);
  if (!IsNamed(path, file)) return;
  SetUse(file.fd(), NextUse());
  Count(key);
}

// A damaged file goes to the quarantine, unless another one has its name by
// now.
void ImageFiles::Discard(const std::string& key, const std::string& path,
                         const FileDescriptor& file) {
  const std::string aside = absl::StrCat(quarantine_, "/", key, kImageSuffix);
  absl::MutexLock lock(&mutex_);
  if (!IsNamed(path, file)) return;
  if (::rename(path.c_str(), aside.c_str()) != 0) ::unlink(path.c_str());
  Count(key);
  TrimQuarantine();
}

void ImageFiles::TrimQuarantine() {
  std::vector<std::pair<int64_t, std::string>> files;
  for (const auto& entry : EntriesOf(quarantine_)) {
    struct stat found;
    const std::string path = entry.path().string();
    if (!absl::EndsWith(path, kImageSuffix) ||
        ::lstat(path.c_str(), &found) != 0) {
      continue;
    }
    files.emplace_back(UseOf(found), path);
  }
  std::sort(files.rbegin(), files.rend());
  for (size_t i = kMostInQuarantine; i < files.size(); ++i) {
    ::unlink(files[i].second.c_str());
  }
}

void ImageFiles::ScanLoop() {
  Scan();
  scanned_.Notify();
  while (!stopping_.WaitForNotificationWithTimeout(look_again_)) Scan();
}

void ImageFiles::Scan() {
  std::vector<std::string> known;
  {
    absl::MutexLock lock(&mutex_);
    known = index_.Keys();
  }
  for (const std::string& key : known) {
    if (stopping_.HasBeenNotified()) return;
    absl::MutexLock lock(&mutex_);
    Count(key);
  }
  RemoveTemporaries();
  for (int prefix = 0; prefix < 256; ++prefix) {
    ScanPrefix(absl::StrFormat("%02x", prefix));
    if (stopping_.HasBeenNotified()) return;
  }
  absl::MutexLock lock(&mutex_);
  MakeRoom(0, "");
}

void ImageFiles::RemoveTemporaries() {
  const int64_t others = look_again_ == absl::InfiniteDuration()
                             ? std::numeric_limits<int64_t>::max()
                             : absl::ToUnixNanos(absl::Now() - kHalfWritten);
  for (const auto& entry : EntriesOf(new_)) {
    struct stat found;
    if (absl::StartsWith(entry.path().filename().string(), run_) ||
        ::lstat(entry.path().c_str(), &found) != 0 || UseOf(found) > others) {
      continue;
    }
    ::unlink(entry.path().c_str());
  }
}

void ImageFiles::ScanPrefix(const std::string& prefix) {
  for (const auto& entry : EntriesOf(absl::StrCat(images_, "/", prefix))) {
    if (stopping_.HasBeenNotified()) return;
    std::string name = entry.path().filename().string();
    absl::string_view earlier = name;
    if (absl::ConsumeSuffix(&earlier, kImageSuffix) && IsKey(prefix, earlier)) {
      ::unlink(entry.path().c_str());  // of an earlier version of this program
    }
    absl::MutexLock lock(&mutex_);
    if (IsKey(prefix, name) && !index_.Contains(name)) Count(name);
  }
}

}  // namespace txl
