#pragma once

// A world with keys and files in which its calls can be followed.

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "server/access/key_ring.h"
#include "server/base/digest.h"
#include "server/base/line_file.h"
#include "server/base/text_file.h"
#include "server/trace/trace_context.h"
#include "tests/server/http/http_world.h"

namespace txl {

inline constexpr char kGenerate[] = "txl.v1.GenerationService/Generate";

class RecordWorld : public ::testing::Test {
 protected:
  ~RecordWorld() override { RemoveFiles(); }
  void RemoveFiles() {
    for (const std::string& path : {keys_path_, audit_path_, spans_path_}) {
      std::remove(path.c_str());
    }
  }
  void Start(bool with_keys = true) {
    RemoveFiles();
    std::vector<KeyEntry> keys(2);
    keys[0].caller = {"alice", "laptop", Role::kUser};
    keys[0].digest = Sha256Of("user");
    keys[1].caller = {"alice", "judge", Role::kScorer};
    keys[1].digest = Sha256Of("scorer");
    ASSERT_TRUE(WriteKeysFile(keys_path_, keys).ok());
    ring_ = *KeyRing::Open(keys_path_, Clock::Real());
    audit_ = *LineFile::Open({"audit-log", audit_path_});
    spans_ = *LineFile::Open({"trace-file", spans_path_});
    HttpWorldOptions options;
    if (with_keys) options.rpc.keys = ring_.get();
    options.rpc.audit = audit_.get();
    options.rpc.spans = spans_.get();
    options.rpc.trace_rate = rate_;
    world_ = std::make_unique<HttpWorld>(std::move(options));
  }
  // The fields of a trace's lines, once there are so many.
  std::vector<nlohmann::json> Lines(const std::string& trace, size_t count) {
    std::vector<nlohmann::json> found;
    Eventually([&] {
      found.clear();
      for (const auto line :
           absl::StrSplit(ReadTextFile(audit_path_), '\n', absl::SkipEmpty())) {
        const nlohmann::json one = nlohmann::json::parse(line, nullptr, false);
        if (one.is_discarded()) continue;
        if (one["fields"]["trace_id"] == trace) found.push_back(one["fields"]);
      }
      return found.size() >= count;
    });
    return found;
  }
  nlohmann::json Line(const std::string& trace) {
    const std::vector<nlohmann::json> lines = Lines(trace, 1);
    EXPECT_THAT(lines, ::testing::SizeIs(1));
    return lines.empty() ? nlohmann::json() : lines[0];
  }
  std::vector<nlohmann::json> Spans(const std::string& trace, size_t count) {
    std::vector<nlohmann::json> found;
    Eventually([&] {
      found.clear();
      for (const auto line :
           absl::StrSplit(ReadTextFile(spans_path_), '\n', absl::SkipEmpty())) {
        const nlohmann::json one = nlohmann::json::parse(line, nullptr, false);
        if (one.is_discarded()) continue;
        for (const nlohmann::json& span :
             one["resourceSpans"][0]["scopeSpans"][0]["spans"]) {
          if (span["traceId"] == trace) found.push_back(span);
        }
      }
      return found.size() >= count;
    });
    return found;
  }
  RawReply Call(const std::string& method, const std::string& bytes,
                const std::string& key, const std::string& trace = "") {
    RpcWorld::Metadata metadata;
    if (!key.empty()) metadata.emplace("authorization", "Bearer " + key);
    if (!trace.empty()) metadata.emplace("traceparent", trace);
    return CallRaw(world_->rpc.channel, "/" + method, bytes, false, nullptr,
                   metadata);
  }
  HttpAnswer Ask(const std::string& method, const std::string& path,
                 const std::string& body, const std::string& key,
                 HttpFields fields = {}) {
    if (!key.empty()) fields.emplace_back("Authorization", "Bearer " + key);
    return world_->Send(method, path, body, fields);
  }
  // The trace that an answer names; fails the test where it names none.
  static std::string TraceOf(const std::string& traceparent) {
    const auto parsed = ParseTraceparent(traceparent);
    EXPECT_TRUE(parsed.has_value()) << traceparent;
    return parsed.has_value() ? parsed->trace_id : "";
  }

  double rate_ = 1;
  const std::string folder_ =
      ::testing::TempDir() + "/record_" + std::to_string(getpid()) + "_";
  const std::string keys_path_ = folder_ + "keys";
  const std::string audit_path_ = folder_ + "audit";
  const std::string spans_path_ = folder_ + "spans";
  std::unique_ptr<KeyRing> ring_;
  std::unique_ptr<LineFile> audit_;
  std::unique_ptr<LineFile> spans_;
  std::unique_ptr<HttpWorld> world_;
};

inline std::string GenerateBytes(const std::string& text) {
  return Proto<v1::GenerateRequest>(text).SerializeAsString();
}

}  // namespace txl
