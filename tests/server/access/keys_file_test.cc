#include "server/access/keys_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/base/text_file.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

// Of the empty text, FIPS 180-4.
constexpr char kDigest[] =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string EntryText(const std::string& name, const std::string& rest = "",
                      const std::string& digest = kDigest) {
  return absl::StrCat("[[key]]\nname = \"", name,
                      "\"\ntenant = \"t\"\nrole = \"user\"\nsha256 = \"",
                      digest, "\"\n", rest);
}

TEST(KeysFile, IsTomlThatAPersonCanWrite) {
  const auto keys = ParseKeys(
      absl::StrCat("# ours\n", EntryText("a"),
                   EntryText("b", "expires = \"2027-01-01T00:00:00Z\"\n",
                             std::string(64, '0'))));
  ASSERT_TRUE(keys.ok()) << keys.status();
  ASSERT_EQ(keys->size(), 2u);
  EXPECT_EQ((*keys)[0].caller.name, "a");
  EXPECT_EQ((*keys)[0].caller.tenant, "t");
  EXPECT_EQ((*keys)[0].caller.role, Role::kUser);
  EXPECT_EQ((*keys)[0].digest, absl::HexStringToBytes(kDigest));
  EXPECT_EQ((*keys)[0].expires, absl::InfiniteFuture());
  EXPECT_EQ(absl::ToUnixSeconds((*keys)[1].expires), 1'798'761'600);
  EXPECT_TRUE(ParseKeys("")->empty());
}

TEST(KeysFile, IsReadAsItWasFormatted) {
  std::vector<KeyEntry> keys;
  for (const Role role : kAllRoles) {
    KeyEntry key;
    key.caller = {"tenant", RoleName(role), role};
    key.digest = std::string(31, 'd') + static_cast<char>(keys.size());
    if (role == Role::kUser) key.expires = absl::FromUnixSeconds(1'800'000'000);
    keys.push_back(key);
  }
  const auto read = ParseKeys(FormatKeys(keys));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ((*read)[i].caller.name, keys[i].caller.name);
    EXPECT_EQ((*read)[i].caller.role, keys[i].caller.role);
    EXPECT_EQ((*read)[i].digest, keys[i].digest);
    EXPECT_EQ((*read)[i].expires, keys[i].expires);
  }
  EXPECT_TRUE(ParseKeys(FormatKeys({}))->empty());
}

TEST(KeysFile, MayHaveTimesAsTomlWritesThem) {
  for (const char* expires :
       {"2027-01-01T00:00:00Z", "2027-01-01 01:00:00+01:00",
        "\"2027-01-01T01:00:00+01:00\""}) {
    const auto keys =
        ParseKeys(EntryText("a", absl::StrCat("expires = ", expires, "\n")));
    ASSERT_TRUE(keys.ok()) << keys.status();
    EXPECT_EQ(absl::ToUnixSeconds((*keys)[0].expires), 1'798'761'600)
        << expires;
  }
}

TEST(KeysFile, MayBeWrittenByAnEditorOfWindows) {
  std::string text = absl::StrCat("\xEF\xBB\xBF", EntryText("a"));
  text = absl::StrReplaceAll(text, {{"\n", "\r\n"}, {"user", "User"}});
  const auto keys = ParseKeys(text);
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ((*keys)[0].caller.role, Role::kUser);
  EXPECT_THAT(std::string(ParseKeys("\xFF\xFE[\0").status().message()),
              HasSubstr("line 1: "));
}

TEST(KeysFile, NamesTheLineOfWhatIsWrong) {
  struct Row {
    std::string toml, error;
  };
  const Row rows[] = {
      {"[[key]\n", "line 1"},
      {"keys = 1\n", "line 1: the file has [[key]] alone"},
      {"key = 1\n", "line 1: the file has [[key]] alone"},
      {"\n[[key]]\n", "line 2: `name` must be a text"},
      {EntryText("a", "rol = 1\n"), "`rol` is not a field of a key"},
      {EntryText("a", "expire = 1\n"),
       "`expire` is not a field of a key; did you mean expires?"},
      {EntryText("a b"), "`name` must be 1 to 64 characters"},
      {EntryText(std::string(65, 'a')), "`name` must be 1 to 64 characters"},
      {EntryText("a", "", "abc"), "`sha256` must be 64 hexadecimal digits"},
      {EntryText("a", "", std::string(64, 'g')), "`sha256` must be 64"},
      {EntryText("a", "expires = \"soon\"\n"), "`expires` must be a time"},
      {EntryText("a", "expires = \"2027-01-01\"\n"),
       "`expires` must be a time"},
      {EntryText("a", "expires = \"2027-02-30T00:00:00Z\"\n"),
       "`expires` must be a time"},
      {EntryText("a", "expires = 2027-01-01T00:00:00\n"),
       "`expires` must be a time"},
      {EntryText("a", "expires = 2027-01-01\n"), "`expires` must be a time"},
      {EntryText("a", "expires = 1798761600\n"), "`expires` must be a time"},
      {EntryText("a", "expires = \"infinite-future\"\n"),
       "`expires` must be a time"},
      {EntryText("a", "expires = \" 2027-01-01T00:00:00Z\"\n"),
       "`expires` must be a time"},
      {EntryText("a") + EntryText("a", "", std::string(64, '0')),
       "line 6: the key \"a\" is there twice"},
      {EntryText("a") + EntryText("b"), "line 6: the key \"b\" is there twice"},
      {"[[key]]\nname = \"a\"\ntenant = \"t/u\"\nrole = \"user\"\nsha256 = \"" +
           std::string(kDigest) + "\"",
       "`tenant` must be 1 to 64 characters"},
      {"[[key]]\nname = \"a\"\ntenant = \"t\"\nrole = \"root\"\nsha256 = \"" +
           std::string(kDigest) + "\"",
       "`role` must be user, scorer, metrics or admin"},
  };
  for (const Row& row : rows) {
    const absl::Status status = ParseKeys(row.toml).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.toml;
    EXPECT_THAT(status.message(), HasSubstr(row.error)) << row.toml;
  }
}

TEST(KeysFile, KeepsItsOtherLinesWhenKeysComeAndGo) {
  const std::string path = ::testing::TempDir() + "/kept_keys";
  const std::string first = absl::StrCat("# ours\n\n", EntryText("a"));
  const std::string second =
      absl::StrCat("# of the lab\n", EntryText("b", "", std::string(64, '0')));
  const std::string end = "# the end\n";
  std::ofstream(path) << first << "\n" << second << end;
  std::vector<KeyEntry> keys =
      *ParseKeys(absl::StrCat(first, "\n", second, end));
  const KeyEntry a = keys[0];
  keys.erase(keys.begin());
  ASSERT_TRUE(WriteKeysFile(path, keys).ok());
  EXPECT_EQ(ReadTextFile(path), absl::StrCat("# ours\n\n", second, end));
  keys.push_back(a);
  ASSERT_TRUE(WriteKeysFile(path, keys).ok());
  EXPECT_EQ(ReadTextFile(path),
            absl::StrCat("# ours\n\n", second, end, "\n", FormatKeys({a})));
  keys.pop_back();
  ASSERT_TRUE(WriteKeysFile(path, keys).ok());
  EXPECT_EQ(ReadTextFile(path), absl::StrCat("# ours\n\n", second, end));
}

TEST(KeysFile, OfAnyFormTakesAKeyAndLosesOne) {
  const std::string path = ::testing::TempDir() + "/forms_of_keys";
  const std::string b = EntryText("b", "", std::string(64, '0'));
  const std::string inline_keys = absl::StrCat(
      "# ours\nkey = [{name=\"a\",tenant=\"t\",role=\"user\",sha256=\"",
      kDigest, "\"}]");
  const std::string windows = absl::StrReplaceAll(
      absl::StrCat("\xEF\xBB\xBF", EntryText("a"), "\n"), {{"\n", "\r\n"}});
  const std::string lines =
      absl::StrReplaceAll(EntryText("a"), {{"\"a\"", "\"\"\"\na\"\"\" # A"}});
  for (const std::string& text :
       {std::string(), inline_keys, windows, lines, EntryText("a"),
        absl::StrCat(EntryText("a"), "expires = 2027-01-01T00:00:00Z")}) {
    std::vector<KeyEntry> keys = *ParseKeys(text);
    keys.push_back(ParseKeys(b)->front());
    for (; true; keys.erase(keys.begin())) {
      std::ofstream(path) << text;
      ASSERT_TRUE(WriteKeysFile(path, keys).ok());
      const auto read = ParseKeys(ReadTextFile(path));
      ASSERT_TRUE(read.ok()) << read.status() << text;
      EXPECT_EQ(FormatKeys(*read), FormatKeys(keys)) << text;
      if (keys.empty()) break;
    }
  }
}

TEST(KeysFile, ThatOthersMayReadIsRefusedByName) {
  const std::string path = ::testing::TempDir() + "/open_keys";
  ASSERT_TRUE(WriteKeysFile(path, {}).ok());
  EXPECT_TRUE(ReadKeysFile(path).ok());
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  const absl::Status status = ReadKeysFile(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("open_keys: others may use it"));
}

TEST(KeysFile, ThatIsWrongIsNamed) {
  const std::string path = ::testing::TempDir() + "/wrong_keys";
  std::ofstream(path) << "key = 1\n";
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(ReadKeysFile(path).status().message(),
            path + ": line 1: the file has [[key]] alone");
}

TEST(NewKey, Is256BitsInCharactersThatNeedNoQuotes) {
  std::set<std::string> keys;
  for (int i = 0; i < 100; ++i) {
    const std::string key = *NewKey();
    EXPECT_EQ(key.size(), 43u);
    EXPECT_TRUE(std::all_of(key.begin(), key.end(), [](unsigned char c) {
      return absl::ascii_isalnum(c) || c == '-' || c == '_';
    })) << key;
    std::string bytes;
    EXPECT_TRUE(absl::WebSafeBase64Unescape(key, &bytes));
    EXPECT_EQ(bytes.size(), 32u);
    keys.insert(key);
  }
  EXPECT_EQ(keys.size(), 100u);
}

}  // namespace
}  // namespace txl
