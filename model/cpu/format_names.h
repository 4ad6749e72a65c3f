#pragma once

// The number formats and forms of the native step by the names that flags,
// reports and state images use.

#include <array>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/cpu/attention_form.h"
#include "model/cpu/panel_product.h"

namespace txl {

struct NamedFormat {
  const char* name;
  NumberFormat format;
};

inline constexpr std::array<NamedFormat, 4> kWeightFormats = {
    {{"f32", NumberFormat::kF32},
     {"bf16", NumberFormat::kBF16},
     {"f16", NumberFormat::kF16},
     {"int8", NumberFormat::kInt8}}};
// Of stored and of derived rows, which have no scales.
inline constexpr absl::Span<const NamedFormat> kRowFormats =
    absl::MakeConstSpan(kWeightFormats).first(3);

struct NamedForm {
  const char* name;
  AttentionForm form;
};

inline constexpr std::array<NamedForm, 2> kForms = {
    {{"projected", AttentionForm::kProjected},
     {"absorbed", AttentionForm::kAbsorbed}}};

const char* FormatName(NumberFormat format);
const char* FormName(AttentionForm form);
// Nothing: no such name among `formats`.
std::optional<NumberFormat> FindFormat(absl::Span<const NamedFormat> formats,
                                       absl::string_view name);
std::optional<AttentionForm> FindForm(absl::string_view name);
// "f32, bf16, f16"
std::string JoinNames(absl::Span<const NamedFormat> formats);

}  // namespace txl
