#include "model/base/number_format.h"

#include "absl/strings/str_join.h"

namespace txl {

const char* FormatName(NumberFormat format) {
  for (const NamedFormat& named : kWeightFormats) {
    if (named.format == format) return named.name;
  }
  return "";
}

std::optional<NumberFormat> FindFormat(absl::Span<const NamedFormat> formats,
                                       absl::string_view name) {
  for (const NamedFormat& named : formats) {
    if (named.name == name) return named.format;
  }
  return std::nullopt;
}

std::string JoinNames(absl::Span<const NamedFormat> formats) {
  return absl::StrJoin(formats, ", ",
                       [](std::string* out, const NamedFormat& named) {
                         out->append(named.name);
                       });
}

}  // namespace txl
