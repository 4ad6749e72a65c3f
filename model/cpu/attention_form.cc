#include "model/cpu/attention_form.h"

#include <algorithm>

namespace txl {

double AttentionCost(const AttentionShape& shape, AttentionForm form) {
  const double rows = static_cast<double>(shape.mem_len);
  const double width = static_cast<double>(shape.heads * shape.head_width);
  const double model_width = static_cast<double>(shape.model_width);
  double bytes = 0;
  double operations = 0;
  if (form == AttentionForm::kProjected) {
    bytes = 2 * rows * width * static_cast<double>(NumberBytes(shape.derived));
    operations = 4 * rows * width;
  } else {
    bytes = rows * model_width * static_cast<double>(NumberBytes(shape.memory));
    operations = 4 * rows * static_cast<double>(shape.heads) * model_width;
  }
  return std::max(bytes, operations / kFlopPerByte);
}

AttentionForm ChooseForm(const AttentionShape& shape) {
  return AttentionCost(shape, AttentionForm::kAbsorbed) <
                 AttentionCost(shape, AttentionForm::kProjected)
             ? AttentionForm::kAbsorbed
             : AttentionForm::kProjected;
}

}  // namespace txl
