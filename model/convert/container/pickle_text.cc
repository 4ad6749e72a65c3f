#include "model/convert/container/pickle_text.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

constexpr size_t kPrintableBytes = 120;

absl::Status BrokenEscape() {
  return absl::InvalidArgumentError("a string has a broken escape");
}

// `digits` hexadecimal digits at `at`.
absl::StatusOr<uint32_t> HexAt(absl::string_view text, size_t at,
                               size_t digits) {
  if (at > text.size() || text.size() - at < digits) return BrokenEscape();
  uint32_t number = 0;
  for (const char c : text.substr(at, digits)) {
    if (!absl::ascii_isxdigit(static_cast<unsigned char>(c))) {
      return BrokenEscape();
    }
    const int low = absl::ascii_tolower(static_cast<unsigned char>(c));
    number = number * 16 +
             static_cast<uint32_t>(low <= '9' ? low - '0' : low - 'a' + 10);
  }
  return number;
}

// Up to three octal digits at `at`, which moves behind them.
char Octal(absl::string_view text, size_t& at) {
  int number = 0;
  for (int i = 0;
       i < 3 && at < text.size() && text[at] >= '0' && text[at] <= '7'; ++i) {
    number = number * 8 + (text[at++] - '0');
  }
  return static_cast<char>(number);
}

// Appends what the escape after a backslash at `at` means; `at` moves on.
absl::Status AppendEscape(absl::string_view text, size_t& at,
                          std::string& out) {
  static constexpr absl::string_view kNames = "\\'\"abfnrtv";
  static constexpr absl::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
  if (at >= text.size()) return BrokenEscape();
  const char c = text[at];
  if (const size_t known = kNames.find(c); known != kNames.npos) {
    out += kMeanings[known];
    ++at;
  } else if (c >= '0' && c <= '7') {
    out += Octal(text, at);
  } else if (c == 'x') {
    TXL_ASSIGN_OR_RETURN(const uint32_t byte, HexAt(text, at + 1, 2));
    out += static_cast<char>(byte);
    at += 3;
  } else {
    out += '\\';  // Python keeps what it does not know.
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> UnquoteString(absl::string_view quoted) {
  quoted = absl::StripTrailingAsciiWhitespace(quoted);
  if (quoted.size() < 2 || quoted.front() != quoted.back() ||
      (quoted.front() != '\'' && quoted.front() != '"')) {
    return absl::InvalidArgumentError("a string lacks its quotes");
  }
  const absl::string_view text = quoted.substr(1, quoted.size() - 2);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at++];
    if (c != '\\') {
      out += c;
      continue;
    }
    TXL_RETURN_IF_ERROR(AppendEscape(text, at, out));
  }
  return out;
}

absl::StatusOr<std::string> DecodeRawUnicode(absl::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const bool escape = text[at] == '\\' && at + 1 < text.size() &&
                        (text[at + 1] == 'u' || text[at + 1] == 'U');
    if (!escape) {
      AppendCodePoint(static_cast<unsigned char>(text[at++]), out);
      continue;
    }
    const size_t digits = text[at + 1] == 'u' ? 4 : 8;
    TXL_ASSIGN_OR_RETURN(uint32_t code, HexAt(text, at + 2, digits));
    at += 2 + digits;
    // Narrow builds of Python 2 write two surrogates.
    if (code >= 0xD800 && code < 0xDC00 &&
        text.substr(at, 2) == absl::string_view("\\u")) {
      const absl::StatusOr<uint32_t> low = HexAt(text, at + 2, 4);
      if (low.ok() && *low >= 0xDC00 && *low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (*low - 0xDC00);
        at += 6;
      }
    }
    if (code > 0x10FFFF) return BrokenEscape();
    AppendCodePoint(code, out);
  }
  return out;
}

absl::StatusOr<std::string> LatinBytes(absl::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    const auto lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) {
      out += text[at];
      continue;
    }
    const bool pair = (lead == 0xC2 || lead == 0xC3) && at + 1 < text.size() &&
                      (static_cast<unsigned char>(text[at + 1]) & 0xC0) == 0x80;
    if (!pair) {
      return absl::InvalidArgumentError("encoded bytes are not Latin-1");
    }
    out += static_cast<char>((lead << 6) | (text[++at] & 0x3F));
  }
  return out;
}

void AppendCodePoint(uint32_t code, std::string& out) {
  const auto continuation = [&](int shift) {
    out += static_cast<char>(0x80 | ((code >> shift) & 0x3F));
  };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    continuation(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    continuation(6);
    continuation(0);
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

std::string Printable(absl::string_view name) {
  const bool cut = name.size() > kPrintableBytes;
  return absl::StrCat(absl::CHexEscape(name.substr(0, kPrintableBytes)),
                      cut ? "..." : "");
}

namespace {

// Packages that are forbidden with everything below them.
constexpr absl::string_view kPackages[] = {
    "_ctypes",    "_posixsubprocess",
    "asyncio",    "cffi",
    "ctypes",     "dill",
    "http",       "importlib",
    "marshal",    "multiprocessing",
    "nt",         "os",
    "pip",        "posix",
    "pty",        "runpy",
    "setuptools", "socket",
    "ssl",        "subprocess",
    "sys",        "urllib",
    "webbrowser", "xmlrpc",
};

// These alone: a user's own package may have the same name.
constexpr absl::string_view kModules[] = {
    "_pickle",     "_posixshmem", "_socket",  "_thread",      "bdb",
    "cPickle",     "cloudpickle", "code",     "codeop",       "commands",
    "ftplib",      "gc",          "imp",      "inspect",      "linecache",
    "mmap",        "nturl2path",  "ntpath",   "pdb",          "pickle",
    "pickletools", "pkgutil",     "platform", "popen2",       "posixpath",
    "pydoc",       "requests",    "shelve",   "shlex",        "shutil",
    "signal",      "site",        "smtplib",  "socketserver", "tempfile",
    "telnetlib",   "threading",   "timeit",   "urllib2",      "zipimport",
};

constexpr absl::string_view kNames[] = {
    "_io.FileIO",
    "_io.open",
    "cProfile.run",
    "cProfile.runctx",
    "codecs.open",
    "io.FileIO",
    "io.open",
    "numpy.load",
    "numpy.testing._private.utils.runstring",
    "operator.attrgetter",
    "operator.methodcaller",
    "profile.run",
    "profile.runctx",
    "torch.hub.load",
    "torch.jit.load",
    "torch.load",
    "torch.serialization.load",
    "torch.utils.model_zoo.load_url",
    "trace.Trace",
    "types.CodeType",
    "types.FunctionType",
    "types.MethodType",
};

constexpr absl::string_view kBuiltins[] = {
    "__import__", "apply",   "breakpoint", "compile", "delattr", "dir",
    "eval",       "exec",    "execfile",   "exit",    "file",    "getattr",
    "globals",    "hasattr", "help",       "input",   "locals",  "map",
    "open",       "quit",    "raw_input",  "reload",  "setattr", "vars",
};

template <typename List>
bool Contains(const List& list, absl::string_view what) {
  return std::find(std::begin(list), std::end(list), what) != std::end(list);
}

}  // namespace

bool IsForbiddenGlobal(absl::string_view module, absl::string_view name) {
  const absl::string_view package = module.substr(0, module.find('.'));
  if (Contains(kPackages, package) || Contains(kModules, module)) return true;
  if (module == "builtins" || module == "__builtin__") {
    // STACK_GLOBAL may give "eval.__call__" as a name.
    return Contains(kBuiltins, name.substr(0, name.find('.')));
  }
  return Contains(kNames, absl::StrCat(module, ".", name));
}

}  // namespace txl
