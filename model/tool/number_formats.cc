#include "model/tool/number_formats.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "model/base/number_format.h"
#include "model/cpu/attention_form.h"
#include "program/flag_checks.h"

namespace txl {
namespace {

std::vector<std::string> FormNames() {
  std::vector<std::string> names = {"auto"};
  for (const NamedForm& named : kForms) names.emplace_back(named.name);
  return names;
}

}  // namespace

void AddFormatFlags(CLI::App& app, FormatFlags& flags) {
  app.add_option("--form", flags.form,
                 "form of the serving engine's attention; auto: the cheaper "
                 "one")
      ->transform(OneOf(FormNames()));
  app.add_option("--weights", flags.weights,
                 "format of the serving engine's weights; int8: a scale per "
                 "output; int4: and a step per 32 inputs, words in int8")
      ->transform(OneOf(FormatNames(kWeightFormats)));
  app.add_option("--memory", flags.memory,
                 "format of its segment memory's rows")
      ->transform(OneOf(FormatNames(kRowFormats)));
  app.add_option("--derived", flags.derived,
                 "format of its keys, values and positional keys")
      ->transform(OneOf(FormatNames(kRowFormats)));
  app.add_option("--products", flags.products,
                 "products of rows with int8 and int4 weights; int8: of rows "
                 "rounded to 8 bits")
      ->transform(OneOf(ProductNames()));
}

NativeFormats FormatsOf(const FormatFlags& flags) {
  NativeFormats formats;
  formats.weights = FindFormat(kWeightFormats, flags.weights).value();
  formats.memory = FindFormat(kRowFormats, flags.memory).value();
  formats.derived = FindFormat(kRowFormats, flags.derived).value();
  formats.form = FindForm(flags.form);
  formats.products = FindProducts(flags.products).value();
  return formats;
}

absl::Status RequireDefaults(const FormatFlags& flags,
                             absl::string_view needed) {
  const FormatFlags defaults;
  struct Value {
    const char* flag;
    const std::string& own;
    const std::string& usual;
  };
  for (const Value& value :
       {Value{"--form", flags.form, defaults.form},
        Value{"--weights", flags.weights, defaults.weights},
        Value{"--memory", flags.memory, defaults.memory},
        Value{"--derived", flags.derived, defaults.derived},
        Value{"--products", flags.products, defaults.products}}) {
    if (value.own == value.usual) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(value.flag, ": ", value.own, " needs ", needed));
  }
  return absl::OkStatus();
}

}  // namespace txl
