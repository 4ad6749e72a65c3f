#include "client/bench/result/page.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_replace.h"
#include "client/bench/result/report_json.h"
#include "client/bench/result/result_file.h"

namespace txl::bench {

absl::StatusOr<std::string> MakePage(const nlohmann::ordered_json& result) {
  const auto main = MainRunOf(result, "result");
  if (!main.ok()) return main.status();
  // No text of a server's ends the element that it stands in: in JSON "<" is
  // part of a string, where it may be written so.
  const std::string data =
      absl::StrReplaceAll(ToLine(result), {{"<", "\\u003c"}});
  return absl::StrReplaceAll(kPageTemplate, {{"@RESULT@", data}});
}

}  // namespace txl::bench
