#pragma once

// Classes of characters as the Moses scripts' ports use them for English, as
// patterns (pattern.h) of one character. They were drawn up from an old Unicode
// version: ideographs and Hangul syllables are not letters, and no letters lie
// outside the basic plane. Up to Unicode 14 the classes are the same character
// by character.

#include <string>

#include "absl/strings/string_view.h"

namespace txl {

// Signs that suppress or change an Indic letter; letters to Moses.
inline constexpr char kMosesIndicSigns[] =
    "\\x{93C}\\x{94D}\\x{9BC}\\x{9CD}\\x{A3C}\\x{A4D}\\x{ABC}\\x{ACD}"
    "\\x{AFD}-\\x{AFF}\\x{B3C}\\x{B4D}\\x{BCD}\\x{C4D}\\x{CBC}\\x{CCD}"
    "\\x{D3B}-\\x{D3C}\\x{D4D}\\x{DCA}\\x{EBA}\\x{1039}\\x{1714}\\x{1BAB}"
    "\\x{1C37}\\x{A8C4}\\x{A953}\\x{AAF6}\\x{10A3F}\\x{11046}"
    "\\x{110B9}-\\x{110BA}\\x{11133}\\x{11173}\\x{111C0}\\x{111CA}"
    "\\x{11235}-\\x{11236}\\x{112E9}-\\x{112EA}\\x{1133C}\\x{1134D}\\x{11442}"
    "\\x{11446}\\x{114C2}-\\x{114C3}\\x{115BF}-\\x{115C0}\\x{1163F}"
    "\\x{116B6}-\\x{116B7}\\x{11839}-\\x{1183A}\\x{119E0}\\x{11A34}\\x{11C3F}"
    "\\x{11D42}\\x{11D45}\\x{11D97}\\x{1E94A}\\x{135F}\\x{25CC}";

// Not letters to Moses although they are to Unicode.
inline constexpr char kMosesIdeographs[] =
    "\\x{3005}\\x{3007}\\x{3021}-\\x{3029}\\x{3038}-\\x{303B}"
    "\\x{3400}-\\x{4DBF}\\x{4E00}-\\x{9FFF}\\x{AC00}-\\x{D7A3}"
    "\\x{F900}-\\x{FAD9}\\x{10000}-\\x{10FFFF}";

// Letters that came after that version, or became letters.
inline constexpr char kMosesNewLetters[] =
    "\\x{560}\\x{588}\\x{5EF}\\x{860}-\\x{86A}\\x{870}-\\x{887}"
    "\\x{889}-\\x{88E}\\x{8B3}-\\x{8C9}\\x{8D4}-\\x{8DF}\\x{8E3}\\x{9FC}"
    "\\x{AF9}-\\x{AFC}\\x{C5A}\\x{C5D}\\x{C80}\\x{CDD}\\x{D00}\\x{D04}"
    "\\x{D54}-\\x{D56}\\x{D5F}\\x{D81}\\x{E86}\\x{E89}\\x{E8C}"
    "\\x{E8E}-\\x{E93}\\x{E98}\\x{EA0}\\x{EA8}-\\x{EA9}\\x{EAC}"
    "\\x{1063}-\\x{1064}\\x{1069}-\\x{106D}\\x{1087}-\\x{108D}\\x{108F}"
    "\\x{109A}-\\x{109B}\\x{13F5}\\x{13F8}-\\x{13FD}\\x{170D}\\x{171F}"
    "\\x{1878}\\x{1ABF}-\\x{1AC0}\\x{1ACC}-\\x{1ACE}\\x{1B4C}\\x{1C36}"
    "\\x{1C80}-\\x{1C88}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}\\x{1CFA}"
    "\\x{2C2F}\\x{2C5F}\\x{312E}-\\x{312F}\\x{31BB}-\\x{31BF}\\x{A69E}"
    "\\x{A78F}\\x{A7AE}-\\x{A7AF}\\x{A7B2}-\\x{A7CA}\\x{A7D0}-\\x{A7D1}"
    "\\x{A7D3}\\x{A7D5}-\\x{A7D9}\\x{A7F2}-\\x{A7F6}\\x{A802}\\x{A80B}"
    "\\x{A8C5}\\x{A8FD}-\\x{A8FF}\\x{A9E5}\\x{AA7B}-\\x{AA7D}"
    "\\x{AB60}-\\x{AB63}\\x{AB66}-\\x{AB69}\\x{AB70}-\\x{ABBF}";

inline constexpr char kMosesNewLowerCase[] =
    "\\x{560}\\x{588}\\x{10D0}-\\x{10FA}\\x{10FD}-\\x{10FF}\\x{2C5F}"
    "\\x{A7AF}\\x{A7B9}\\x{A7BB}\\x{A7BD}\\x{A7BF}\\x{A7C1}\\x{A7C3}"
    "\\x{A7C8}\\x{A7CA}\\x{A7D1}\\x{A7D3}\\x{A7D5}\\x{A7D7}\\x{A7D9}"
    "\\x{A7F6}\\x{AB66}-\\x{AB68}\\x{10597}-\\x{105A1}\\x{105A3}-\\x{105B1}"
    "\\x{105B3}-\\x{105B9}\\x{105BB}-\\x{105BC}\\x{10780}"
    "\\x{10783}-\\x{10785}\\x{10787}-\\x{107B0}\\x{107B2}-\\x{107BA}"
    "\\x{16E60}-\\x{16E7F}\\x{1DF00}-\\x{1DF09}\\x{1DF0B}-\\x{1DF1E}";

// A letter, or one of `more` (what may stand in a class).
inline std::string MosesLetterOr(const std::string& more) {
  return std::string("(?:[") + kMosesIndicSigns + "]|(?![" + kMosesIdeographs +
         kMosesNewLetters + "])[\\p{Alphabetic}" + more + "])";
}

inline std::string MosesLetter() { return MosesLetterOr(""); }

inline std::string MosesNumber() {
  return std::string("(?:(?![\\x{D58}-\\x{D5E}\\x{D76}-\\x{D78}") +
         kMosesIdeographs + "])\\p{N})";
}

inline std::string MosesLowerCase() {
  return std::string("(?:(?![") + kMosesNewLowerCase +
         "])[\\p{Lowercase}\\x{25CC}])";
}

// English abbreviations: words whose period is part of them.

// "Mr", "Dec", a single capital letter, ... (without the period).
bool IsMosesPrefix(absl::string_view word);

// "No", "Art", "pp": before a number only.
bool IsMosesNumberPrefix(absl::string_view word);

}  // namespace txl
