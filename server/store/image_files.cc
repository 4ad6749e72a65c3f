#include "server/store/image_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/time/clock.h"
#include "model/base/status_macros.h"
#include "server/base/digest.h"
#include "server/base/log.h"
#include "server/session/session_name.h"

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

namespace {

void LogFailure(const char* what, const absl::Status& status) {
  Log(LogSeverity::kWarning, "image",
      {{"what", what}, {"error", status.message()}});
}

}  // namespace

ImageKeeper::ImageKeeper(std::unique_ptr<ImageFiles> files,
                         ImageKeeperOptions options)
    : options_(options),
      files_(std::move(files)),
      waiting_(options.most_waiting_bytes) {
  for (int i = 0; i < options_.threads; ++i) {
    threads_.push_back(std::make_unique<TaskThread>());
  }
}

void ImageKeeper::Put(const std::string& session_id, TokenSlice ids,
                      std::shared_ptr<const StateImage> image) {
  std::optional<ByteHold> hold = waiting_.TryHold(image->Bytes());
  // The session's earlier image stays: it is of a beginning of the ids.
  if (!hold.has_value()) return;
  ThreadOf(session_id)
      .Run([this, session_id, ids = std::move(ids), image = std::move(image),
            hold = std::make_shared<ByteHold>(*std::move(hold))] {
        const absl::Status status =
            files_->Put(session_id, DigestOfIds(ids, image->position), *image);
        if (!status.ok()) LogFailure("not written", status);
      });
}

void ImageKeeper::Get(const std::string& session_id,
                      std::function<void(std::optional<KeptImage>)> done) {
  ThreadOf(session_id).Run([this, session_id, done = std::move(done)] {
    absl::StatusOr<StoredImage> stored =
        files_->Get(session_id, options_.most_image_bytes);
    if (!stored.ok()) {
      if (!absl::IsNotFound(stored.status())) {
        LogFailure("not read", stored.status());
      }
      return done(std::nullopt);
    }
    KeptImage kept;
    kept.ids_digest = std::move(stored->ids_digest);
    kept.image = std::make_shared<const StateImage>(std::move(stored->image));
    done(std::move(kept));
  });
}

void ImageKeeper::Remove(const std::string& session_id) {
  ThreadOf(session_id).Run([this, session_id] {
    const absl::Status status = files_->Remove(session_id);
    if (!status.ok()) LogFailure("not removed", status);
  });
}

void ImageKeeper::Flush() {
  absl::BlockingCounter left(static_cast<int>(threads_.size()));
  for (const std::unique_ptr<TaskThread>& thread : threads_) {
    thread->Run([&left] { left.DecrementCount(); });
  }
  left.Wait();
}

TaskThread& ImageKeeper::ThreadOf(const std::string& session_id) {
  return *threads_[std::hash<std::string>()(session_id) % threads_.size()];
}

int64_t ImageIndex::BytesOf(absl::string_view key) const {
  const auto found = files_.find(key);
  return found == files_.end() ? 0 : found->second.bytes;
}

std::vector<std::string> ImageIndex::Keys() const {
  std::vector<std::string> keys;
  keys.reserve(files_.size());
  for (const auto& [key, file] : files_) keys.push_back(key);
  return keys;
}

void ImageIndex::Set(const std::string& key, int64_t bytes, int64_t last_use) {
  Erase(key);
  files_[key] = {bytes, last_use};
  by_use_.emplace(last_use, key);
  bytes_ += bytes;
}

void ImageIndex::Erase(absl::string_view key) {
  const auto found = files_.find(key);
  if (found == files_.end()) return;
  bytes_ -= found->second.bytes;
  by_use_.erase({found->second.last_use, found->first});
  files_.erase(found);
}

const std::string* ImageIndex::Oldest(absl::string_view spared) const {
  for (const auto& [last_use, key] : by_use_) {
    if (key != spared) return &key;
  }
  return nullptr;
}

namespace {

constexpr size_t kHeadDigits = 32;

// -1: no image has such a name.
int64_t PositionOf(absl::string_view name) {
  if (!absl::ConsumeSuffix(&name, kImageSuffix)) return -1;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(name, absl::MaxSplits('-', 1));
  const bool is_head = parts.second.size() == kHeadDigits &&
                       std::all_of(parts.second.begin(), parts.second.end(),
                                   absl::ascii_isxdigit);
  int64_t position = 0;
  return is_head && absl::SimpleAtoi(parts.first, &position) ? position : -1;
}

}  // namespace

std::string ImageNameOf(int64_t position, absl::string_view head) {
  const std::string digest = absl::BytesToHexString(Sha256Of(head));
  return absl::StrCat(position, "-", digest.substr(0, kHeadDigits),
                      kImageSuffix);
}

std::vector<ImageEntry> ListImages(const std::string& folder) {
  std::vector<ImageEntry> images;
  for (const auto& entry : EntriesOf(folder)) {
    const int64_t position = PositionOf(entry.path().filename().string());
    struct stat found;
    if (position < 0 || ::lstat(entry.path().c_str(), &found) != 0) continue;
    images.push_back(
        {entry.path().string(), position, found.st_size, UseOf(found)});
  }
  std::sort(images.begin(), images.end(),
            [](const ImageEntry& a, const ImageEntry& b) {
              return std::pair(a.position, a.path) >
                     std::pair(b.position, b.path);
            });
  return images;
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

int64_t UseOf(const struct stat& file) {
  // A file may have any time; 64 bits of nanoseconds end in the year 2262.
  const int64_t seconds =
      std::clamp<int64_t>(file.st_mtim.tv_sec, 0, int64_t{9'000'000'000});
  return seconds * 1'000'000'000 + file.st_mtim.tv_nsec;
}

void SetUse(int fd, int64_t use) {
  timespec times[2];
  times[0] = {.tv_sec = 0, .tv_nsec = UTIME_OMIT};
  times[1] = {.tv_sec = use / 1'000'000'000, .tv_nsec = use % 1'000'000'000};
  // In vain only on a file system that keeps no times; the order is then that
  // of the writes.
  (void)::futimens(fd, times);
}

}  // namespace txl
