#pragma once

// Prompts from a file.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/bench/plan/workload.h"

namespace txl::bench {

// One prompt a line; empty lines are skipped.
std::vector<Prompt> ParsePromptLines(absl::string_view text);
// One JSON object a line with either "text" or "tokens" (ids); other fields are
// ignored. Errors: InvalidArgument naming the line.
absl::StatusOr<std::vector<Prompt>> ParsePromptObjects(absl::string_view text);

// A file of objects when its name ends in .jsonl, else of lines. Errors: those
// of ParsePromptObjects; InvalidArgument for a file without prompts; NotFound
// for one that cannot be read.
absl::StatusOr<std::vector<Prompt>> ReadPrompts(const std::string& path);

}  // namespace txl::bench
