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

std::vector<std::string> ProductNames() { return {"float", "int8"}; }

std::optional<Products> FindProducts(absl::string_view name) {
  if (name == "float") return Products::kFloat;
  if (name == "int8") return Products::kInteger;
  return std::nullopt;
}

std::vector<std::string> FormatNames(absl::Span<const NamedFormat> formats) {
  std::vector<std::string> names;
  for (const NamedFormat& named : formats) names.emplace_back(named.name);
  return names;
}

std::string JoinNames(absl::Span<const NamedFormat> formats) {
  return absl::StrJoin(FormatNames(formats), ", ");
}

}  // namespace txl
