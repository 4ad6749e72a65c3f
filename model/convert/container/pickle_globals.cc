#include "model/convert/container/pickle_globals.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace txl {
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
