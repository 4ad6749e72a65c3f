#pragma once

// The two sides of a call once its request is there: what sends the answer, and
// who hears what becomes of it.

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

namespace txl {

// One operation at a time; the last one is Finish or WriteAndFinish. Messages
// live until their write ends. Thread-safe otherwise.
class CallWriter {
 public:
  virtual ~CallWriter() = default;
  // Ends with CallEvents::OnWriteDone.
  virtual void Write(const grpc::ByteBuffer* message) = 0;
  virtual void WriteAndFinish(const grpc::ByteBuffer* message,
                              const grpc::Status& status) = 0;
  virtual void Finish(const grpc::Status& status) = 0;
  // Cuts the call off, whatever the client has not read. Finish is still due.
  virtual void Cancel() = 0;
};

// Called from gRPC's threads, OnDone last of all: the writer is gone then.
class CallEvents {
 public:
  virtual ~CallEvents() = default;
  virtual void OnWriteDone(bool /*ok*/) {}
  // The client left, its deadline has passed, or the call was cut off.
  virtual void OnCancel() = 0;
  virtual void OnDone() = 0;
};

}  // namespace txl
