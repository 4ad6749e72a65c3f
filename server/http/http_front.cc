#include "server/http/http_front.h"

#include <utility>

#include "model/base/status_macros.h"

namespace txl {

absl::StatusOr<std::unique_ptr<HttpFront>> HttpFront::Start(HttpOptions options,
                                                            HttpApi api) {
  std::unique_ptr<HttpFront> front(new HttpFront);
  front->api_ = std::move(api);
  const CallDesk& desk = *front->api_.desk;
  options.retry_after = desk.context().turns.model.scheduler.retry_after;
  options.trace_rate = desk.context().trace_rate;
  front->api_.options = options;
  HttpHandlers handlers;
  handlers.handle = [kept = front.get()](std::shared_ptr<Exchange> exchange) {
    AnswerHttp(kept->api_, exchange);
  };
  handlers.let_in = [kept = front.get()](
                        HttpRequest* head,
                        const std::vector<std::string>& authorization) {
    return LetInHttp(kept->api_, authorization, head);
  };
  handlers.refused = [desk = front->api_.desk](const HttpRequest& request,
                                               const absl::Status& status) {
    RecordRefusal(*desk, RuleOf(request.path), request, status);
  };
  handlers.hold_body = [desk = front->api_.desk](int64_t bytes) {
    return desk->HoldRequest(bytes);
  };
  TXL_ASSIGN_OR_RETURN(front->server_, HttpServer::Start(std::move(options),
                                                         std::move(handlers)));
  front->api_.desk->AddConnections(front->server_->Counts());
  return front;
}

}  // namespace txl
