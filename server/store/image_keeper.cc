#include "server/store/image_keeper.h"

#include <functional>
#include <utility>

#include "absl/synchronization/blocking_counter.h"
#include "server/base/log.h"

namespace txl {
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

}  // namespace txl
