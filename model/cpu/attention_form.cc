#include "model/cpu/attention_form.h"

#include <algorithm>

namespace txl {

const char* FormName(AttentionForm form) {
  for (const NamedForm& named : kForms) {
    if (named.form == form) return named.name;
  }
  return "";
}

std::optional<AttentionForm> FindForm(absl::string_view name) {
  for (const NamedForm& named : kForms) {
    if (named.name == name) return named.form;
  }
  return std::nullopt;
}

double AttentionCost(const AttentionWork& work, AttentionForm form) {
  const double rows = static_cast<double>(work.mem_len);
  const double width = static_cast<double>(work.heads * work.head_width);
  const double model_width = static_cast<double>(work.model_width);
  const double derived_bytes =
      2 * rows * width * static_cast<double>(NumberBytes(work.derived));
  const bool cached =
      static_cast<double>(work.layers) * derived_bytes <= kCachedBytes;
  double bytes = 0;
  double operations = 0;
  if (form == AttentionForm::kProjected) {
    bytes = derived_bytes;
    operations = 4 * rows * width;
  } else {
    bytes = rows * model_width * static_cast<double>(NumberBytes(work.memory));
    operations = 4 * rows * static_cast<double>(work.heads) * model_width;
  }
  const bool integers =
      work.memory == NumberFormat::kInt8 && work.derived == NumberFormat::kInt8;
  const double per_byte = (cached ? kFlopPerCachedByte : kFlopPerByte) *
                          (integers ? kIntegerGain : 1);
  return std::max(bytes, operations / per_byte);
}

AttentionForm ChooseForm(const AttentionWork& work) {
  return AttentionCost(work, AttentionForm::kAbsorbed) <
                 AttentionCost(work, AttentionForm::kProjected)
             ? AttentionForm::kAbsorbed
             : AttentionForm::kProjected;
}

}  // namespace txl
