#include "server/format_flags.h"

#include "model/base/number_format.h"
#include "server/engine/quality.h"

namespace txl {

void AddFormatFlags(std::string* quality, StepRunnerOptions* runner,
                    FlagTable* table) {
  table->Choice("quality", quality, QualityNames(),
                "Number formats of the native step on the CPU: exact "
                "(float32), balanced (--weights int8 --derived f16), fast (all "
                "of int8); the four settings below go before it");
  table->Choice("weights", &runner->weights, FormatNames(kWeightFormats),
                "How the native step keeps weights");
  table->Choice("memory", &runner->memory, FormatNames(kRowFormats),
                "How it keeps sessions' memory");
  table->Choice("derived", &runner->derived, FormatNames(kRowFormats),
                "How it keeps keys and values derived from the memory");
  table->Choice(
      "products", &runner->products, ProductNames(),
      "How it multiplies by int8 and int4 weights: float (rows as they "
      "are), "
      "int8 (rows rounded to 8 bits, exact sums: faster)");
}

}  // namespace txl
