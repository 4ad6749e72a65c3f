#include "model/text/moses_classes.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"

namespace txl {
namespace {

constexpr absl::string_view kPrefixes[] = {
    "Adj",  "Adm",  "Adv",   "Asst", "Bart",   "Bldg", "Brig", "Bros", "Capt",
    "Cmdr", "Col",  "Comdr", "Con",  "Corp",   "Cpl",  "DR",   "Dr",   "Drs",
    "Ens",  "Gen",  "Gov",   "Hon",  "Hr",     "Hosp", "Insp", "Lt",   "MM",
    "MR",   "MRS",  "MS",    "Maj",  "Messrs", "Mlle", "Mme",  "Mr",   "Mrs",
    "Ms",   "Msgr", "Op",    "Ord",  "Pfc",    "Ph",   "Prof", "Pvt",  "Rep",
    "Reps", "Res",  "Rev",   "Rt",   "Sen",    "Sens", "Sfc",  "Sgt",  "Sr",
    "St",   "Supt", "Surg",  "v",    "vs",     "i.e",  "rev",  "e.g",  "Rs",
    "Nos",  "Nr",   "Jan",   "Feb",  "Mar",    "Apr",  "Jun",  "Jul",  "Aug",
    "Sep",  "Oct",  "Nov",   "Dec",
};

constexpr absl::string_view kNumberPrefixes[] = {"No", "Art", "pp"};

}  // namespace

bool IsMosesPrefix(absl::string_view word) {
  if (word.size() == 1) {
    return absl::ascii_isupper(static_cast<unsigned char>(word[0])) ||
           word == "v";
  }
  return std::find(std::begin(kPrefixes), std::end(kPrefixes), word) !=
         std::end(kPrefixes);
}

bool IsMosesNumberPrefix(absl::string_view word) {
  return std::find(std::begin(kNumberPrefixes), std::end(kNumberPrefixes),
                   word) != std::end(kNumberPrefixes);
}

}  // namespace txl
