#pragma once

// The image store on files: reads and writes by threads of its own, so that
// nobody who has or wants an image waits for the disk.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/base/byte_budget.h"
#include "server/base/task_thread.h"
#include "server/session/image_store.h"
#include "server/store/image_files.h"

namespace txl {

struct ImageKeeperOptions {
  int threads = 2;
  // Of images that wait to be written; more are left out.
  int64_t most_waiting_bytes = int64_t{256} << 20;
  // Of one image that is read.
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

}  // namespace txl
