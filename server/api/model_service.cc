#include <vector>

#include "model/base/status_macros.h"
#include "server/api/convert_input.h"
#include "server/api/convert_output.h"
#include "server/api/services.h"
#include "server/api/unary_turn.h"

namespace txl {

namespace {

void WriteMidi(const MidiIds& music, v1::TokenizeResponse* out) {
  out->mutable_token_ids()->Add(music.ids.begin(), music.ids.end());
  for (const LeftOut& part : music.left_out) {
    v1::LeftOut* told = out->add_left_out();
    told->set_what(part.what);
    told->set_count(part.count);
  }
}

}  // namespace

void GetModel(const ServedModel& model, const std::shared_ptr<ApiCall>& call) {
  AnswerCall<v1::GetModelRequest, v1::GetModelResponse>(
      *call, [&](const auto&, auto* out) {
        WriteModel(model, out);
        return absl::OkStatus();
      });
}

void GetServerStatus(const std::shared_ptr<ApiCall>& call) {
  AnswerCall<v1::GetServerStatusRequest, v1::GetServerStatusResponse>(
      *call, [&](const auto&, auto* out) {
        WriteStatus(call->desk().Status(), out);
        return absl::OkStatus();
      });
}

void Tokenize(const ServedModel& model, const std::shared_ptr<ApiCall>& call) {
  AnswerCall<v1::TokenizeRequest, v1::TokenizeResponse>(
      *call, [&](const auto& in, auto* out) -> absl::Status {
        if (in.has_midi()) {
          TXL_ASSIGN_OR_RETURN(const MidiIds music,
                               ReadMidi(in, *model.facts, model.limits));
          WriteMidi(music, out);
          return absl::OkStatus();
        }
        TXL_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                             ReadTokenize(in, *model.facts, model.limits));
        out->mutable_token_ids()->Add(ids.begin(), ids.end());
        return absl::OkStatus();
      });
}

void Detokenize(const ServedModel& model,
                const std::shared_ptr<ApiCall>& call) {
  AnswerCall<v1::DetokenizeRequest, v1::DetokenizeResponse>(
      *call, [&](const auto& in, auto* out) -> absl::Status {
        TXL_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                             ReadDetokenize(in, *model.facts, model.limits));
        TXL_ASSIGN_OR_RETURN(*out->mutable_text(),
                             model.facts->vocabulary->Decode(ids));
        return absl::OkStatus();
      });
}

}  // namespace txl
