#include "server/store/image_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "model/base/status_macros.h"
#include "server/base/digest.h"
#include "server/session/session_id.h"

namespace txl {
namespace {

constexpr absl::string_view kSuffix = ".txlm";

std::string KeyOf(absl::string_view session_id) {
  return absl::BytesToHexString(Sha256Of(session_id));
}

// The key of a file of this name in a folder of this name; empty: it is none.
std::string KeyOfFile(absl::string_view folder, absl::string_view name) {
  const absl::string_view key = name.substr(0, 2 * kDigestBytes);
  const bool is_one =
      name.size() == key.size() + kSuffix.size() &&
      absl::EndsWith(name, kSuffix) && absl::StartsWith(key, folder) &&
      key.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
  return is_one ? std::string(key) : "";
}

int64_t UseOf(const struct stat& file) {
  // A file may have any time; 64 bits of nanoseconds end in the year 2262.
  const int64_t seconds =
      std::clamp<int64_t>(file.st_mtim.tv_sec, 0, int64_t{9'000'000'000});
  return seconds * 1'000'000'000 + file.st_mtim.tv_nsec;
}

// A file's time of change is that of its last use, also for the next process.
void SetUse(int fd, int64_t use) {
  timespec times[2];
  times[0] = {.tv_sec = 0, .tv_nsec = UTIME_OMIT};
  times[1] = {.tv_sec = use / 1'000'000'000, .tv_nsec = use % 1'000'000'000};
  // In vain only on a file system that keeps no times; the order is then that
  // of the writes.
  (void)::futimens(fd, times);
}

// Whether `path` still names the open file.
bool IsNamed(const std::string& path, const FileDescriptor& file,
             struct stat& named) {
  struct stat open;
  return ::lstat(path.c_str(), &named) == 0 && ::fstat(file.fd(), &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

std::vector<std::filesystem::directory_entry> EntriesOf(
    const std::string& folder) {
  std::vector<std::filesystem::directory_entry> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end;
       !error && at != end; at.increment(error)) {
    entries.push_back(*at);
  }
  return entries;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ImageFiles>> ImageFiles::Open(
    const std::string& folder, int64_t max_bytes) {
  TXL_ASSIGN_OR_RETURN(std::string run, RandomSessionId());
  std::unique_ptr<ImageFiles> files(
      new ImageFiles(folder, max_bytes, std::move(run)));
  for (const std::string& path :
       {folder, files->images_, files->new_, files->quarantine_}) {
    TXL_RETURN_IF_ERROR(MakeFolder(path));
  }
  files->scan_ = std::thread([&files = *files] { files.Scan(); });
  return files;
}

ImageFiles::ImageFiles(const std::string& folder, int64_t max_bytes,
                       std::string run)
    : images_(absl::StrCat(folder, "/images")),
      new_(absl::StrCat(images_, "/new")),
      quarantine_(absl::StrCat(folder, "/quarantine")),
      max_bytes_(max_bytes),
      run_(std::move(run)) {}

ImageFiles::~ImageFiles() {
  stopping_ = true;
  if (scan_.joinable()) scan_.join();
}

std::string ImageFiles::FolderOf(const std::string& key) const {
  return absl::StrCat(images_, "/", key.substr(0, 2));
}

std::string ImageFiles::PathOf(const std::string& key) const {
  return absl::StrCat(FolderOf(key), "/", key, kSuffix);
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
  if (status.ok()) status = MakeFolder(FolderOf(key));
  {
    absl::MutexLock lock(&mutex_);
    being_written_bytes_ -= bytes;
    if (status.ok()) status = MoveIn(path, key, bytes, use);
  }
  if (status.ok()) return SyncFolder(FolderOf(key));
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
                                int64_t bytes, int64_t use) {
  const std::string path = PathOf(key);
  if (::rename(from.c_str(), path.c_str()) != 0) {
    return FileError(path, "rename a new file to it", errno);
  }
  index_.Set(key, bytes, use);
  return absl::OkStatus();
}

absl::StatusOr<StoredImage> ImageFiles::Get(absl::string_view session_id,
                                            int64_t most_bytes) {
  const std::string key = KeyOf(session_id);
  const std::string path = PathOf(key);
  const absl::Status none =
      absl::NotFoundError("there is no state image of this session");
  // Without waiting, should it be a pipe.
  const FileDescriptor file(
      ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.is_open()) {
    return errno == ENOENT ? none : FileError(path, "open", errno);
  }
  absl::StatusOr<StoredImage> stored =
      ReadImageFile(file.fd(), path, session_id, most_bytes);
  if (stored.ok()) {
    NoteUse(key, file);
  } else if (absl::IsDataLoss(stored.status())) {
    Discard(key, file, /*keep_aside=*/true);
  } else if (absl::IsFailedPrecondition(stored.status())) {
    Discard(key, file, /*keep_aside=*/false);
    return none;
  }
  return stored;
}

absl::Status ImageFiles::Remove(absl::string_view session_id) {
  const std::string key = KeyOf(session_id);
  const std::string path = PathOf(key);
  {
    absl::MutexLock lock(&mutex_);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
      return FileError(path, "remove", errno);
    }
    index_.Erase(key);
  }
  const absl::Status synced = SyncFolder(FolderOf(key));
  struct stat folder;
  // Without the folder there was no file.
  if (!synced.ok() && ::stat(FolderOf(key).c_str(), &folder) != 0 &&
      errno == ENOENT) {
    return absl::OkStatus();
  }
  return synced;
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

// Removes the oldest files until `needed` more bytes may be written. The spared
// one is about to be replaced.
void ImageFiles::MakeRoom(int64_t needed, absl::string_view spared) {
  while (index_.bytes() - index_.BytesOf(spared) + being_written_bytes_ +
             needed >
         max_bytes_) {
    const std::string* oldest = index_.Oldest(spared);
    if (oldest == nullptr) return;
    ::unlink(PathOf(*oldest).c_str());
    index_.Erase(std::string(*oldest));
  }
}

// The file has just been read: it may have another name or none by now.
void ImageFiles::NoteUse(const std::string& key, const FileDescriptor& file) {
  struct stat named;
  absl::MutexLock lock(&mutex_);
  if (!IsNamed(PathOf(key), file, named)) return;
  const int64_t use = NextUse();
  SetUse(file.fd(), use);
  index_.Set(key, named.st_size, use);
}

// Takes the file's name away, unless another file has it by now.
void ImageFiles::Discard(const std::string& key, const FileDescriptor& file,
                         bool keep_aside) {
  const std::string path = PathOf(key);
  const std::string aside = absl::StrCat(quarantine_, "/", key, kSuffix);
  struct stat named;
  absl::MutexLock lock(&mutex_);
  if (!IsNamed(path, file, named)) return;
  if (!keep_aside || ::rename(path.c_str(), aside.c_str()) != 0) {
    ::unlink(path.c_str());
  }
  index_.Erase(key);
  if (keep_aside) TrimQuarantine();
}

void ImageFiles::TrimQuarantine() {
  std::vector<std::pair<int64_t, std::string>> files;
  for (const auto& entry : EntriesOf(quarantine_)) {
    struct stat found;
    const std::string path = entry.path().string();
    if (!absl::EndsWith(path, kSuffix) || ::lstat(path.c_str(), &found) != 0) {
      continue;
    }
    files.emplace_back(UseOf(found), path);
  }
  std::sort(files.rbegin(), files.rend());
  for (size_t i = kMostInQuarantine; i < files.size(); ++i) {
    ::unlink(files[i].second.c_str());
  }
}

void ImageFiles::Scan() {
  RemoveTemporaries();
  for (int folder = 0; folder < 256 && !stopping_; ++folder) {
    ScanFolder(absl::StrFormat("%02x", folder));
  }
  {
    absl::MutexLock lock(&mutex_);
    if (!stopping_) MakeRoom(0, "");
  }
  scanned_.Notify();
}

void ImageFiles::RemoveTemporaries() {
  for (const auto& entry : EntriesOf(new_)) {
    if (absl::StartsWith(entry.path().filename().string(), run_)) continue;
    ::unlink(entry.path().c_str());
  }
}

void ImageFiles::ScanFolder(const std::string& folder) {
  for (const auto& entry : EntriesOf(absl::StrCat(images_, "/", folder))) {
    if (stopping_) return;
    const std::string key = KeyOfFile(folder, entry.path().filename().string());
    struct stat found;
    absl::MutexLock lock(&mutex_);
    if (key.empty() || index_.Contains(key) ||
        ::lstat(entry.path().c_str(), &found) != 0) {
      continue;
    }
    index_.Set(key, found.st_size, UseOf(found));
    last_use_ = std::max(last_use_, UseOf(found));
  }
}

}  // namespace txl
