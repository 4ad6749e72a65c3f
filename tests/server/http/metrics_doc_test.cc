// docs/metrics.md against what the endpoint exports, in both directions.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/http/metrics_endpoint.h"
#include "tests/server/exporter/fake_status.h"

namespace txl {
namespace {

// What is said of a metric.
struct Description {
  std::string type;
  std::set<std::string> labels;
  bool operator==(const Description&) const = default;
};
using Descriptions = std::map<std::string, Description>;

std::string Words(const Description& description) {
  std::string words = description.type;
  for (const std::string& label : description.labels) {
    absl::StrAppend(&words, " ", label);
  }
  return words;
}

std::string ReadDoc() {
  const char* folder = std::getenv("TXL_TEST_DATA");
  std::ifstream file(absl::StrCat(folder == nullptr ? "tests" : folder,
                                  "/../docs/metrics.md"));
  EXPECT_TRUE(file.good());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The words in backticks of a table's cell, those in parentheses (values of a
// label) left out.
std::set<std::string> Quoted(const std::string& cell) {
  std::set<std::string> words;
  int depth = 0;
  bool open = false;
  std::string word;
  for (const char c : cell) {
    depth += (c == '(') - (c == ')');
    if (c == '`') {
      if (open && depth == 0) words.insert(word);
      word.clear();
      open = !open;
    } else if (open) {
      word += c;
    }
  }
  return words;
}

// Rows "| `name` | type | labels | ..." of every table.
Descriptions Documented(const std::string& doc) {
  Descriptions metrics;
  const std::vector<std::string> lines = absl::StrSplit(doc, '\n');
  for (const std::string& line : lines) {
    if (!absl::StartsWith(line, "| `")) continue;
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    EXPECT_GE(cells.size(), 8u) << line;
    const std::set<std::string> names = Quoted(cells[1]);
    EXPECT_EQ(names.size(), 1u) << line;
    if (cells.size() < 8 || names.size() != 1) continue;
    EXPECT_NE(absl::StripAsciiWhitespace(cells[4]), "") << "no unit: " << line;
    EXPECT_NE(absl::StripAsciiWhitespace(cells[5]), "") << "no text: " << line;
    const Description description = {
        std::string(absl::StripAsciiWhitespace(cells[2])), Quoted(cells[3])};
    EXPECT_TRUE(metrics.emplace(*names.begin(), description).second) << line;
  }
  return metrics;
}

Descriptions Exported() {
  const auto endpoint = MetricsEndpoint::Start(
      "127.0.0.1:0", testing::FakeFacts(), testing::FakeStatus);
  EXPECT_TRUE(endpoint.ok());
  const testing::Scrape scrape = testing::ScrapeMetrics((*endpoint)->address());
  Descriptions metrics;
  for (const auto& [name, type] : scrape.types) metrics[name].type = type;
  for (const auto& [sample, value] : scrape.samples) {
    const size_t brace = sample.find('{');
    if (brace == std::string::npos) continue;
    std::string name = sample.substr(0, brace);
    for (const char* suffix : {"_bucket", "_sum", "_count"}) {
      if (metrics.contains(name)) break;
      if (absl::EndsWith(name, suffix)) {
        name.erase(name.size() - absl::string_view(suffix).size());
      }
    }
    // No value of the fake server holds a comma.
    for (const absl::string_view label : absl::StrSplit(
             sample.substr(brace + 1, sample.size() - brace - 2), ',')) {
      const std::string key(label.substr(0, label.find('=')));
      if (key != "le" && key != "quantile") metrics[name].labels.insert(key);
    }
  }
  return metrics;
}

TEST(MetricsDocTest, EveryExportedMetricIsDescribedAsItIs) {
  const Descriptions documented = Documented(ReadDoc());
  for (const auto& [name, description] : Exported()) {
    const auto it = documented.find(name);
    ASSERT_NE(it, documented.end()) << name << " is not in docs/metrics.md";
    EXPECT_EQ(Words(it->second), Words(description)) << name;
  }
}

TEST(MetricsDocTest, EveryDescribedMetricIsExported) {
  const Descriptions exported = Exported();
  for (const auto& [name, description] : Documented(ReadDoc())) {
    EXPECT_TRUE(exported.contains(name)) << name;
  }
}

// Names in the text and in expressions are those of the tables.
TEST(MetricsDocTest, NoOtherNameIsUsed) {
  const std::string doc = ReadDoc();
  const Descriptions documented = Documented(doc);
  size_t at = 0;
  while ((at = doc.find("txl_", at)) != std::string::npos) {
    const size_t end = doc.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at);
    std::string name = doc.substr(at, end - at);
    at = end;
    for (const char* suffix : {"_bucket", "_sum", "_count"}) {
      if (documented.contains(name)) break;
      if (absl::EndsWith(name, suffix)) {
        name.erase(name.size() - absl::string_view(suffix).size());
      }
    }
    EXPECT_TRUE(documented.contains(name)) << name;
  }
}

TEST(MetricsDocTest, TheReaderOfTablesSeesNamesTypesAndLabels) {
  const Descriptions metrics = Documented(
      "| name | type | labels | unit | meaning | look |\n"
      "|-|-|-|-|-|-|\n"
      "| `a_total` | counter | `x`, `y` (`1`, `2`) | things | text | |\n"
      "text with `b` in it\n");
  ASSERT_EQ(metrics.size(), 1u);
  EXPECT_EQ(Words(metrics.at("a_total")), "counter x y");
}

}  // namespace
}  // namespace txl
