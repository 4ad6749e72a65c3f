#include "model/convert/container/pickle_text.h"

#include <gtest/gtest.h>

#include <string>

namespace txl {
namespace {

TEST(PickleText, QuotedStringsLoseQuotesAndEscapes) {
  EXPECT_EQ(*UnquoteString("'plain'"), "plain");
  EXPECT_EQ(*UnquoteString("\"it's\""), "it's");
  EXPECT_EQ(*UnquoteString("'it\\'s'"), "it's");
  EXPECT_EQ(*UnquoteString("'\\\\\\t\\x00\\101'"), std::string("\\\t\0A", 4));
  EXPECT_EQ(*UnquoteString("'\\q'"), "\\q");
  EXPECT_EQ(*UnquoteString("''\r"), "");
}

TEST(PickleText, BrokenQuotesAndEscapesAreErrors) {
  for (const char* text : {"", "'", "abc", "'abc\"", "'\\x4'", "'\\xzz'"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(UnquoteString(text).status())) << text;
  }
}

TEST(PickleText, RawUnicodeIsLatinWithTwoEscapes) {
  EXPECT_EQ(*DecodeRawUnicode("a\\n"), "a\\n");
  EXPECT_EQ(*DecodeRawUnicode("\xfc"), "\xc3\xbc");
  EXPECT_EQ(*DecodeRawUnicode("\\u20AC"), "\xe2\x82\xac");
  EXPECT_EQ(*DecodeRawUnicode("\\U0001d11e"), "\xf0\x9d\x84\x9e");
  // The same character as two surrogates.
  EXPECT_EQ(*DecodeRawUnicode("\\ud834\\udd1e"), "\xf0\x9d\x84\x9e");
  EXPECT_FALSE(DecodeRawUnicode("\\u12").ok());
  EXPECT_FALSE(DecodeRawUnicode("\\U00110000").ok());
}

TEST(PickleText, LatinBytesUndoTheirEncoding) {
  EXPECT_EQ(*LatinBytes("a\xc2\x80\xc3\xbf"), "a\x80\xff");
  EXPECT_FALSE(LatinBytes("\xe2\x82\xac").ok());
  EXPECT_FALSE(LatinBytes("\xc3").ok());
  EXPECT_FALSE(LatinBytes("\xc4\x80").ok());
}

TEST(PickleText, NamesForErrorsAreShortAndPrintable) {
  EXPECT_EQ(Printable("layers.0"), "layers.0");
  EXPECT_EQ(Printable("a\n\x1b[2J"), "a\\n\\x1b[2J");
  EXPECT_LT(Printable(std::string(10'000, 'x')).size(), 200u);
}

TEST(PickleGlobals, WhatCanRunSomethingIsForbidden) {
  const char* const forbidden[][2] = {
      {"os", "system"},
      {"posix", "popen"},
      {"nt", "system"},
      {"subprocess", "Popen"},
      {"builtins", "eval"},
      {"__builtin__", "execfile"},
      {"builtins", "getattr"},
      {"builtins", "__import__"},
      {"builtins", "open"},
      {"builtins", "compile"},
      {"importlib", "import_module"},
      {"importlib.util", "spec_from_file_location"},
      {"runpy", "run_path"},
      {"shutil", "rmtree"},
      {"socket", "socket"},
      {"ctypes", "CDLL"},
      {"pty", "spawn"},
      {"code", "InteractiveInterpreter"},
      {"webbrowser", "open"},
      {"pickle", "loads"},
      {"_pickle", "Unpickler"},
      {"marshal", "loads"},
      {"sys", "modules"},
      {"types", "CodeType"},
      {"torch", "load"},
      {"numpy", "load"},
      {"builtins", "eval.__call__"}};
  for (const auto& [module, name] : forbidden) {
    EXPECT_TRUE(IsForbiddenGlobal(module, name)) << module << "." << name;
  }
}

TEST(PickleGlobals, WhatCheckpointsNameIsAllowed) {
  const char* const allowed[][2] = {{"collections", "OrderedDict"},
                                    {"builtins", "set"},
                                    {"__builtin__", "object"},
                                    {"_codecs", "encode"},
                                    {"argparse", "Namespace"},
                                    {"torch", "FloatStorage"},
                                    {"re", "_compile"},
                                    {"numpy.core.multiarray", "scalar"},
                                    {"code.model", "Transformer"},
                                    {"pathlib", "PosixPath"},
                                    {"types", "SimpleNamespace"},
                                    {"mem_transformer", "eval"},
                                    {"utils.vocabulary", "Vocab"},
                                    {"functools", "partial"},
                                    {"torch._utils", "_rebuild_parameter"}};
  for (const auto& [module, name] : allowed) {
    EXPECT_FALSE(IsForbiddenGlobal(module, name)) << module << "." << name;
  }
}

}  // namespace
}  // namespace txl
