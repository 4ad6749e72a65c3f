#include "server/api/admin_dump.h"

#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "server/api/call_record.h"
#include "server/api/convert_output.h"
#include "server/base/digest.h"

namespace txl {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kNameBytes = 8;  // of a digest: 16 hexadecimal digits

const char* KindName(TurnKind kind) {
  switch (kind) {
    case TurnKind::kGenerate:
      return "generate";
    case TurnKind::kAppend:
      return "append";
    case TurnKind::kScore:
      return "score";
    case TurnKind::kAlternatives:
      return "alternatives";
    case TurnKind::kSave:
      return "save";
  }
  return "";
}

// Null: it has none.
Json NameOf(const std::string& tenant) {
  if (tenant.empty()) return Json();
  return absl::BytesToHexString(Sha256Of(tenant).substr(0, kNameBytes));
}

// As lines of the log name it. Likewise.
Json NameOf(const SessionName& session) {
  return session.empty() ? Json() : Json(HashOf(session));
}

Json OfMessage(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  // Fails only for unknown Any types, of which the API has none.
  (void)google::protobuf::util::MessageToJsonString(message, &json, options);
  return Json::parse(json);
}

Json OfTurn(const TurnReport& turn) {
  return {{"state", turn.state},
          {"kind", KindName(turn.kind)},
          {"key", turn.key},
          {"session", NameOf(turn.name)},
          {"tenant", NameOf(turn.tenant)},
          {"priority", turn.priority},
          {"age_seconds", absl::ToDoubleSeconds(turn.age)},
          {"tokens_in", turn.tokens_in},
          {"unsent", turn.unsent},
          {"slot", turn.slot},
          {"rows_left", turn.rows_left},
          {"tokens_in_flight", turn.tokens_in_flight},
          {"generated", turn.generated},
          {"parked", turn.parked},
          {"paused", turn.paused},
          {"away", turn.away}};
}

Json OfSlot(const SlotReport& slot) {
  return {{"slot", slot.slot},
          {"key", slot.key},
          {"rows", slot.rows},
          {"running", slot.running},
          {"leaving", slot.leaving},
          {"image_current", slot.image_current},
          {"idle_seconds",
           slot.running ? Json() : Json(absl::ToDoubleSeconds(slot.idle))}};
}

Json OfScheduler(const std::optional<SchedulerReport>& report) {
  if (!report.has_value()) return {{"answered", false}};
  Json turns = Json::array();
  for (const TurnReport& turn : report->turns) {
    turns.push_back(OfTurn(turn));
  }
  Json slots = Json::array();
  for (const SlotReport& slot : report->slots) slots.push_back(OfSlot(slot));
  return {{"answered", true},
          {"steps_planned", report->steps_planned},
          {"steps_in_flight", report->steps_in_flight},
          {"all_turns", report->all_turns},
          {"turns", turns},
          {"slots_total", report->slots_total},
          {"slots_used", report->slots_used},
          {"slots", slots}};
}

Json OfStore(const StoreReport& report) {
  Json sessions = Json::array();
  for (const SessionReport& session : report.sessions) {
    sessions.push_back({{"key", session.key},
                        {"session", NameOf(session.name)},
                        {"tenant", NameOf(session.name.tenant())},
                        {"busy", session.busy},
                        {"position", session.position},
                        {"durable_position", session.durable_position},
                        {"image_rows", session.image_rows},
                        {"has_image", session.has_image},
                        {"idle_seconds", absl::ToDoubleSeconds(session.idle)},
                        {"last_outcome", session.last_outcome}});
  }
  return {{"named", report.named},        {"temporary", report.temporary},
          {"deleted", report.deleted},    {"empty", report.empty},
          {"away", report.away},          {"in_slot", report.in_slot},
          {"sessions_in_slots", sessions}};
}

}  // namespace

std::string DumpJson(const ServiceContext& service,
                     const std::optional<SchedulerReport>& scheduler) {
  v1::GetModelResponse model;
  WriteModel(service, &model);
  v1::GetServerStatusResponse status;
  WriteStatus(service.administration->status(), &status);
  Json draining = Json::array();
  for (const std::string& tenant : service.lifecycle->draining_tenants()) {
    draining.push_back(NameOf(tenant));
  }
  const Json dump = {{"model", OfMessage(model)},
                     {"status", OfMessage(status)},
                     {"draining_tenants", draining},
                     {"scheduler", OfScheduler(scheduler)},
                     {"store", OfStore(service.store->Report(kMostReported))}};
  return dump.dump();
}

}  // namespace txl
