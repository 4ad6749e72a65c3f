#include "tests/server/exporter/scrape.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace txl::testing {
namespace {

int Connect(const std::string& address) {
  const std::vector<std::string> parts = absl::StrSplit(address, ':');
  int port = 0;
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &port) ||
      inet_pton(AF_INET, parts[0].c_str(), &to.sin_addr) != 1) {
    return -1;
  }
  to.sin_port = htons(static_cast<uint16_t>(port));
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0) return fd;
  close(fd);
  return -1;
}

std::string Ask(int fd, const std::string& request) {
  std::string answer;
  if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) return answer;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = recv(fd, buffer, sizeof(buffer), 0)) > 0) {
    answer.append(buffer, got);
  }
  return answer;
}

// The family of a sample: histograms and summaries have several names.
std::string FamilyOf(const Scrape& scrape, const std::string& name) {
  if (scrape.types.contains(name)) return name;
  for (const char* suffix : {"_bucket", "_sum", "_count"}) {
    absl::string_view stem = name;
    if (!absl::ConsumeSuffix(&stem, suffix)) continue;
    const auto it = scrape.types.find(std::string(stem));
    if (it == scrape.types.end()) continue;
    if (it->second == "histogram" || it->second == "summary") return it->first;
  }
  return "";
}

bool ParseComment(const std::string& line, Scrape* scrape,
                  std::string* family) {
  const std::vector<std::string> words =
      absl::StrSplit(line, absl::MaxSplits(' ', 3));
  if (words.size() != 4) return false;
  if (words[1] == "HELP")
    return scrape->helps.emplace(words[2], words[3]).second;
  *family = words[2];
  return words[1] == "TYPE" && scrape->types.emplace(words[2], words[3]).second;
}

bool ParseSample(const std::string& line, Scrape* scrape,
                 const std::string& family) {
  const size_t space = line.rfind(' ');
  if (space == std::string::npos) return false;
  const std::string sample = line.substr(0, space);
  const std::string name = sample.substr(0, sample.find('{'));
  double value = 0;
  return absl::SimpleAtod(line.substr(space + 1), &value) &&
         FamilyOf(*scrape, name) == family && !family.empty() &&
         scrape->samples.emplace(sample, value).second;
}

// Distributions that were wanted of a softmax's cluster; -1: there is none.
double TailsOf(const Scrape& scrape, int cluster) {
  double sum = 0;
  for (const char* action : {"computed", "skipped"}) {
    const auto it = scrape.samples.find(
        absl::StrCat("txl_softmax_tail_total{cluster=\"", cluster,
                     "\",action=\"", action, "\"}"));
    if (it == scrape.samples.end()) return -1;
    sum += it->second;
  }
  return sum;
}

}  // namespace

HttpAnswer HttpGet(const std::string& address, const std::string& path) {
  HttpAnswer answer;
  const int fd = Connect(address);
  if (fd < 0) return answer;
  const std::string all =
      Ask(fd, absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: ", address,
                           "\r\nConnection: close\r\n\r\n"));
  close(fd);
  const size_t end = all.find("\r\n\r\n");
  if (end == std::string::npos) return answer;
  const std::vector<std::string> head =
      absl::StrSplit(all.substr(0, end), "\r\n");
  if (!absl::SimpleAtoi(head[0].substr(0, 12).substr(9), &answer.code)) {
    return answer;
  }
  for (absl::string_view line : head) {
    if (absl::ConsumePrefix(&line, "Content-Type: ")) {
      answer.content_type = std::string(line);
    }
  }
  answer.body = all.substr(end + 4);
  return answer;
}

double Scrape::At(const std::string& sample) const {
  const auto it = samples.find(sample);
  if (it != samples.end()) return it->second;
  ADD_FAILURE() << "no sample " << sample;
  return -1;
}

double Scrape::Sum(const std::string& name) const {
  double sum = 0;
  for (const auto& [sample, value] : samples) {
    if (sample.substr(0, sample.find('{')) == name) sum += value;
  }
  return sum;
}

Scrape ParseScrape(const std::string& text) {
  Scrape scrape;
  std::string family;
  const std::vector<std::string> lines =
      absl::StrSplit(text, '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    const bool good = absl::StartsWith(line, "# ")
                          ? ParseComment(line, &scrape, &family)
                          : ParseSample(line, &scrape, family);
    if (!good) scrape.mistakes.push_back(line);
  }
  return scrape;
}

Scrape ScrapeMetrics(const std::string& address) {
  const HttpAnswer answer = HttpGet(address, "/metrics");
  EXPECT_EQ(answer.code, 200) << answer.body;
  EXPECT_TRUE(absl::StartsWith(answer.content_type, "text/plain"))
      << answer.content_type;
  Scrape scrape = ParseScrape(answer.body);
  for (const std::string& line : scrape.mistakes) ADD_FAILURE() << line;
  return scrape;
}

void ExpectConserved(const Scrape& scrape) {
  const double started = scrape.At("txl_requests_started_total");
  const double waiting = scrape.At("txl_requests_waiting");
  const double ended = scrape.Sum("txl_requests_total");
  EXPECT_EQ(started, ended + scrape.At("txl_requests_running") + waiting);
  EXPECT_EQ(started, scrape.At("txl_request_queue_seconds_count") + waiting);
  EXPECT_EQ(ended, scrape.At("txl_request_duration_seconds_count"));
  EXPECT_EQ(ended, scrape.At("txl_request_prompt_tokens_count"));
  const double generated = scrape.At("txl_tokens_total{kind=\"generated\"}");
  EXPECT_EQ(scrape.At("txl_tokens_sampled_total"),
            generated + scrape.At("txl_tokens_total{kind=\"wasted\"}"));
  EXPECT_EQ(generated, scrape.At("txl_time_to_first_token_seconds_count") +
                           scrape.At("txl_inter_token_latency_seconds_count"));
  EXPECT_EQ(
      scrape.Sum("txl_rows_total"),
      scrape.At("txl_rows_kept_total") + scrape.At("txl_rows_discarded_total"));
  EXPECT_LE(scrape.At("txl_guesses_accepted_total"),
            scrape.At("txl_tokens_guessed_total"));
  EXPECT_LE(scrape.At("txl_steps_saved_total"),
            scrape.At("txl_guesses_accepted_total"));
  EXPECT_LE(scrape.At("txl_prefix_cache_hits_total"),
            scrape.At("txl_prefix_cache_lookups_total"));
  EXPECT_LE(scrape.At("txl_prefix_cache_hits_total"),
            scrape.At("txl_prompt_tokens_cached_total"));
  EXPECT_EQ(scrape.At("txl_steps_total"),
            scrape.At("txl_steps_failed_total") +
                scrape.Sum("txl_step_seconds_count"));
  // Without a store none is loaded or stored away.
  EXPECT_EQ(scrape.At("txl_sessions_created_total") +
                scrape.Sum("txl_sessions_loaded_total"),
            scrape.At("txl_sessions_ended_total") +
                scrape.Sum("txl_sessions_stored_away_total") +
                scrape.Sum("txl_sessions"));
  EXPECT_GE(scrape.At("txl_requests_running"), 0);
  EXPECT_GE(scrape.At("txl_stream_queue_tokens"), 0);
  const double tails = TailsOf(scrape, 0);
  for (int c = 1; TailsOf(scrape, c) >= 0; ++c) {
    EXPECT_EQ(TailsOf(scrape, c), tails) << "cluster " << c;
  }
}

}  // namespace txl::testing
