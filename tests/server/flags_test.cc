#include "server/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/flag_table.h"
#include "server/scheduler/durable_sink.h"
#include "tests/server/settings_reference.h"

namespace txl {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Sets a variable while it lives.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    setenv(name, value, 1);
  }
  ~Environment() { unsetenv(name_); }

 private:
  const char* const name_;
};

class FlagsTest : public testing::Test {
 protected:
  std::string WriteFile(const std::string& text) {
    // Named after the test: tests of one program run at the same time.
    const std::string path =
        testing::TempDir() + "/txl-flags-" +
        testing::UnitTest::GetInstance()->current_test_info()->name() + ".toml";
    std::ofstream(path) << text;
    return path;
  }

  ServerFlags Parse(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--model", "m"});
    const absl::StatusOr<ParsedFlags> parsed = ParseFlags(arguments);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed.value_or(ParsedFlags{}).print, "");
    return parsed.value_or(ParsedFlags{}).flags;
  }

  // With these keys in the table [tuning].
  ServerFlags ParseTuning(const std::string& keys) {
    return Parse({"--config", WriteFile("[tuning]\n" + keys)});
  }

  std::string Error(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--model", "m"});
    const absl::StatusOr<ParsedFlags> parsed = ParseFlags(arguments);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(parsed.status().message());
  }

  std::string TuningError(const std::string& keys) {
    return Error({"--config", WriteFile("[tuning]\n" + keys)});
  }
};

TEST_F(FlagsTest, AreAllInTheDocuments) {
  const char* tests = std::getenv("TXL_TEST_DATA");
  std::ifstream file(
      absl::StrCat(tests == nullptr ? "tests" : tests, "/../docs/settings.md"));
  const std::string document{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(document == MakeSettingsReference())
      << "run: build/bin/txl-settings-reference > docs/settings.md";
}

TEST_F(FlagsTest, EachSettingHasARowInTheDocument) {
  const std::string document = MakeSettingsReference();
  const auto settings = ParseFlags({"--model", "m", "--print-config"});
  ASSERT_TRUE(settings.ok()) << settings.status();
  std::string prefix = "--";
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(settings->print, '\n'))) {
    if (line == "[tuning]") prefix = "";
    const size_t end = line.find(" = ");
    if (end == std::string::npos) continue;
    EXPECT_THAT(document, HasSubstr(absl::StrCat("\n| `", prefix,
                                                 line.substr(0, end), "` | ")));
  }
  for (const char* other :
       {"config", "print-config", "check-config", "store-recover"}) {
    EXPECT_THAT(document, HasSubstr(absl::StrCat("\n| `--", other, "` | ")));
  }
}

TEST_F(FlagsTest, HaveTheDefaultsOfTheParts) {
  const ServerFlags flags = Parse({});
  EXPECT_EQ(flags.model, "m");
  EXPECT_EQ(flags.listen, "127.0.0.1:50051");
  EXPECT_EQ(flags.drain_timeout, absl::Seconds(30));
  EXPECT_EQ(flags.limits.prompt_tokens, RequestLimits().prompt_tokens);
  EXPECT_EQ(flags.scheduler.max_queued_calls,
            SchedulerOptions().max_queued_calls);
  EXPECT_EQ(flags.sessions.default_ttl, absl::Hours(24));
  EXPECT_EQ(flags.store.data_dir, "");
  EXPECT_EQ(flags.store.durability, "turn");
  EXPECT_EQ(flags.store.journal_lag, DurableSinkOptions().most_lag);
}

TEST_F(FlagsTest, KeepSessionsInOneStore) {
  const std::string redis = "redis://a:1";
  const ServerFlags flags =
      Parse({"--store", redis, "--session-lease", "7s", "--image-dir", "/i"});
  EXPECT_EQ(flags.store.store, redis);
  EXPECT_EQ(flags.store.session_lease, absl::Seconds(7));
  EXPECT_EQ(flags.store.image_dir, "/i");
  EXPECT_EQ(Parse({}).store.session_lease, absl::Seconds(5));
  EXPECT_THAT(Error({"--store", redis, "--data-dir", "/d"}),
              AllOf(HasSubstr("--data-dir"), HasSubstr("--store")));
  EXPECT_THAT(Error({"--store", "a:1"}),
              AllOf(HasSubstr("--store"), HasSubstr("redis://HOST:PORT")));
  EXPECT_THAT(Error({"--store", "redis://a:1,redis://b:2"}),
              AllOf(HasSubstr("--store"), HasSubstr("one address")));
  EXPECT_THAT(Error({"--image-dir", "/i"}),
              AllOf(HasSubstr("--image-dir"), HasSubstr("--store")));
}

// A user who sets one believes that sessions outlive the server.
TEST_F(FlagsTest, PromiseNothingOfSessionsThatAreNotKept) {
  for (const std::vector<std::string>& promise :
       {std::vector<std::string>{"--durability", "token"},
        {"--store-recover"}}) {
    EXPECT_THAT(Error(promise), AllOf(HasSubstr(promise[0]),
                                      HasSubstr("--data-dir or --store")));
    std::vector<std::string> kept = promise;
    kept.insert(kept.end(), {"--data-dir", "/d"});
    EXPECT_EQ(Parse(kept).store.data_dir, "/d");
  }
}

TEST_F(FlagsTest, ListenOnAddressesThatDiffer) {
  EXPECT_THAT(
      Error({"--listen", "127.0.0.1:81", "--metrics-listen", "127.0.0.1:81"}),
      HasSubstr("--metrics-listen 127.0.0.1:81: is the address of --listen"));
  EXPECT_THAT(Error({"--listen", "unix:/s", "--admin-listen", "unix:/s"}),
              HasSubstr("--admin-listen unix:/s: is the address of --listen"));
  const std::string any = "127.0.0.1:0";
  EXPECT_EQ(Parse({"--listen", any, "--http-listen", any}).http.listen, any);
}

TEST_F(FlagsTest, LetAdministrationListenOnThisMachineAlone) {
  EXPECT_EQ(Parse({}).admin_listen, "auto");
  EXPECT_EQ(Parse({"--admin-listen", "off"}).admin_listen, "off");
  EXPECT_EQ(Parse({"--admin-listen", "unix:/s"}).admin_listen, "unix:/s");
  EXPECT_THAT(Error({"--admin-listen", "nowhere"}), HasSubstr("admin-listen"));
  EXPECT_THAT(Error({"--insecure", "--admin-listen", "0.0.0.0:1"}),
              HasSubstr("--admin-listen 0.0.0.0:1: is beyond loopback"));
}

TEST_F(FlagsTest, OpenNoMetricsEndpointUnlessAsked) {
  EXPECT_EQ(Parse({}).metrics_listen, "");
  EXPECT_EQ(Parse({"--metrics-listen", "127.0.0.1:0"}).metrics_listen,
            "127.0.0.1:0");
  EXPECT_EQ(Parse({"--metrics-listen", ""}).metrics_listen, "");
  const std::string file = WriteFile("metrics-listen = \"[::1]:9090\"\n");
  EXPECT_EQ(Parse({"--config", file}).metrics_listen, "[::1]:9090");
  const Environment listen("TXL_METRICS_LISTEN", "0.0.0.0:9090");
  EXPECT_EQ(Parse({"--config", file}).metrics_listen, "0.0.0.0:9090");
}

TEST_F(FlagsTest, RefuseAWrongMetricsAddressWhereverItStands) {
  for (const char* bad : {"9090", "host", "host:99999", "unix:/m.sock"}) {
    EXPECT_THAT(Error({"--metrics-listen", bad}),
                AllOf(HasSubstr("--metrics-listen"), HasSubstr(bad)));
  }
  EXPECT_THAT(Error({"--config", WriteFile("metrics-listen = \"9090\"\n")}),
              HasSubstr("metrics-listen"));
  const Environment listen("TXL_METRICS_LISTEN", "9090");
  EXPECT_THAT(Error({}), HasSubstr("--metrics-listen"));
}

TEST_F(FlagsTest, NeedAModel) {
  const auto parsed = ParseFlags({});
  EXPECT_THAT(parsed.status().message(), HasSubstr("--model"));
}

TEST_F(FlagsTest, TakeTheModelFromTheEnvironment) {
  const Environment model("TXL_MODEL", "from-env");
  const auto parsed = ParseFlags({});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->flags.model, "from-env");
}

TEST_F(FlagsTest, GoBeforeEnvironmentBeforeFileBeforeDefault) {
  const std::string file =
      WriteFile("max-tokens = 10\nmax-calls = 11\nmax-prompt-tokens = 12\n");
  const Environment tokens("TXL_MAX_TOKENS", "20");
  const Environment calls("TXL_MAX_CALLS", "21");
  const ServerFlags flags = Parse({"--config", file, "--max-tokens", "30"});
  EXPECT_EQ(flags.limits.max_tokens, 30);
  EXPECT_EQ(flags.calls.calls, 21);
  EXPECT_EQ(flags.limits.prompt_tokens, 12);
  EXPECT_EQ(flags.limits.stop_tokens, RequestLimits().stop_tokens);
}

TEST_F(FlagsTest, SayInsecureInEveryPlace) {
  EXPECT_FALSE(Parse({}).insecure);
  EXPECT_TRUE(Parse({"--insecure"}).insecure);
  const std::string on = WriteFile("insecure = true\n");
  EXPECT_TRUE(Parse({"--config", on}).insecure);
  {
    const Environment off("TXL_INSECURE", "false");
    EXPECT_FALSE(Parse({"--config", on}).insecure);
  }
  const Environment also_on("TXL_INSECURE", "true");
  EXPECT_TRUE(Parse({}).insecure);
  EXPECT_THAT(Error({"--config", WriteFile("model = true\n")}),
              HasSubstr("model: must be a string"));
}

TEST_F(FlagsTest, ListenBeyondLoopbackWithTlsOrKnowingly) {
  EXPECT_THAT(Error({"--listen", "0.0.0.0:50051"}),
              AllOf(HasSubstr("--listen 0.0.0.0:50051"),
                    HasSubstr("--tls-cert"), HasSubstr("--insecure")));
  EXPECT_THAT(Error({"--http-listen", "[::]:8080"}),
              HasSubstr("--http-listen [::]:8080"));
  EXPECT_EQ(Parse({"--listen", "0.0.0.0:50051", "--insecure"}).listen,
            "0.0.0.0:50051");
  const ServerFlags flags = Parse(
      {"--http-listen", "0.0.0.0:8080", "--tls-cert", "c.pem", "--tls-key",
       "k.pem", "--tls-client-ca", "ca.pem", "--tls-crl", "r.crl"});
  EXPECT_EQ(flags.tls.certificate, "c.pem");
  EXPECT_EQ(flags.tls.key, "k.pem");
  EXPECT_EQ(flags.tls.client_ca, "ca.pem");
  EXPECT_EQ(flags.tls.revoked, "r.crl");
}

TEST_F(FlagsTest, UnderstandDurationsAndSizes) {
  const ServerFlags flags =
      Parse({"--drain-timeout", "1m30s", "--session-ttl=90s", "--http-ping=0",
             "--slot-memory", "2GiB", "--memory-limit=64KiB"});
  EXPECT_EQ(flags.drain_timeout, absl::Seconds(90));
  EXPECT_EQ(flags.sessions.default_ttl, absl::Seconds(90));
  EXPECT_EQ(flags.http.ping, absl::ZeroDuration());
  EXPECT_EQ(flags.runner.slot_bytes, int64_t{2} << 30);
  EXPECT_EQ(flags.memory_limit, 64 << 10);
}

TEST_F(FlagsTest, GiveThePrefixCacheAShareASizeOrNothing) {
  EXPECT_FALSE(Parse({}).prefix_cache.has_value());
  EXPECT_FALSE(Parse({"--prefix-cache", "AUTO"}).prefix_cache.has_value());
  EXPECT_EQ(Parse({"--prefix-cache", "2GiB"}).prefix_cache, int64_t{2} << 30);
  EXPECT_EQ(Parse({"--prefix-cache", "0"}).prefix_cache, 0);
  for (const char* line :
       {"prefix-cache = \"64KiB\"", "prefix-cache = 65536"}) {
    EXPECT_EQ(Parse({"--config", WriteFile(line)}).prefix_cache, 64 << 10);
  }
  const Environment cache("TXL_PREFIX_CACHE", "auto");
  EXPECT_FALSE(Parse({"--config", WriteFile("prefix-cache = 1")})
                   .prefix_cache.has_value());
  for (const char* bad : {"much", "-1", ""}) {
    EXPECT_THAT(Error({"--prefix-cache", bad}),
                AllOf(HasSubstr("--prefix-cache"), HasSubstr("or auto")))
        << bad;
  }
}

TEST_F(FlagsTest, PrintThePrefixCacheAsTheyReadIt) {
  for (const char* size : {"auto", "64KiB", "0"}) {
    const auto settings =
        ParseFlags({"--model", "m", "--prefix-cache", size, "--print-config"});
    ASSERT_TRUE(settings.ok()) << settings.status();
    EXPECT_THAT(settings->print,
                HasSubstr(absl::StrCat("\nprefix-cache = '", size, "'\n")));
  }
}

TEST_F(FlagsTest, UnderstandTheSameInAFile) {
  const ServerFlags flags = Parse(
      {"--config", WriteFile("drain-timeout = \"2s\"\nslot-memory = \"1MiB\"\n"
                             "listen = \"unix:/run/txl.sock\"\n")});
  EXPECT_EQ(flags.drain_timeout, absl::Seconds(2));
  EXPECT_EQ(flags.runner.slot_bytes, 1 << 20);
  EXPECT_EQ(flags.listen, "unix:/run/txl.sock");
}

TEST_F(FlagsTest, ReadNumbersAlikeInEveryPlace) {
  for (const char* text : {"10", "+10", "010", "10.0", "1e1"}) {
    EXPECT_EQ(Parse({"--max-tokens", text}).limits.max_tokens, 10) << text;
    const Environment tokens("TXL_MAX_TOKENS", text);
    EXPECT_EQ(Parse({}).limits.max_tokens, 10) << text;
    const std::string quoted = absl::StrCat("max-tokens = \"", text, "\"\n");
    EXPECT_EQ(Parse({"--config", WriteFile(quoted)}).limits.max_tokens, 10);
  }
  EXPECT_EQ(Parse({"--config", WriteFile("max-tokens = 1e1\n"
                                         "slot-memory = 1e9\n")})
                .runner.slot_bytes,
            1'000'000'000);
  for (const char* text :
       {" 10", "10 ", "0x10", "inf", "nan", "1.5", "1e300"}) {
    EXPECT_THAT(Error({"--max-tokens", text}), HasSubstr("--max-tokens"));
    {
      const Environment tokens("TXL_MAX_TOKENS", text);
      EXPECT_THAT(Error({}), HasSubstr("--max-tokens")) << text;
    }
    const std::string quoted = absl::StrCat("max-tokens = \"", text, "\"\n");
    EXPECT_THAT(Error({"--config", WriteFile(quoted)}),
                HasSubstr("max-tokens"));
  }
}

TEST_F(FlagsTest, OfAFileAreOfTheSettingsType) {
  for (const char* line :
       {"listen = 50051", "socket-mode = 0o660", "model = 1.5",
        "http-hosts = [\"a\", \"b\"]", "log-level = true"}) {
    EXPECT_THAT(Error({"--config", WriteFile(line)}),
                HasSubstr(": must be a string"))
        << line;
  }
  EXPECT_THAT(Error({"--config", WriteFile("max-tokens = true")}),
              HasSubstr("max-tokens: must be a string or a number"));
  EXPECT_THAT(Error({"--config", WriteFile("insecure = [true]")}),
              HasSubstr("insecure: must be true or false"));
}

TEST_F(FlagsTest, SayTruthInAFewWords) {
  for (const char* yes : {"true", "TRUE", "yes", "on", "1"}) {
    const Environment insecure("TXL_INSECURE", yes);
    EXPECT_TRUE(Parse({}).insecure) << yes;
  }
  for (const char* no : {"false", "No", "off", "0"}) {
    const Environment insecure("TXL_INSECURE", no);
    EXPECT_FALSE(Parse({"--config", WriteFile("insecure = true\n")}).insecure)
        << no;
  }
  for (const char* neither : {"-3", "7", "maybe", "y"}) {
    const Environment insecure("TXL_INSECURE", neither);
    EXPECT_THAT(Error({}),
                AllOf(HasSubstr("--insecure"), HasSubstr("not one of")))
        << neither;
  }
}

// Which there are is the machine's; the engine checks it.
TEST_F(FlagsTest, NameTheVectorTarget) {
  EXPECT_EQ(Parse({}).runner.vector_target, "auto");
  EXPECT_EQ(Parse({"--vector-target", "avx2"}).runner.vector_target, "avx2");
}

TEST_F(FlagsTest, TakeNamesInAnyCase) {
  const Environment level("TXL_LOG_LEVEL", "INFO");
  EXPECT_EQ(Parse({}).log_level, "info");
  EXPECT_EQ(Parse({"--log-level", "Debug"}).log_level, "debug");
  EXPECT_EQ(Parse({"--step", "Native"}).runner.step, "native");
  const std::string file = WriteFile("log-format = \"JSON\"\n");
  EXPECT_EQ(Parse({"--config", file}).log_format, "json");
}

TEST_F(FlagsTest, TakeFilesOfEditorsOfWindows) {
  const std::string marked = "\xEF\xBB\xBFmax-tokens = 10\r\n";
  EXPECT_EQ(Parse({"--config", WriteFile(marked)}).limits.max_tokens, 10);
  for (const std::string& other :
       {std::string("\xFF\xFEm\0", 4), std::string("# caf\xE9\n")}) {
    EXPECT_THAT(Error({"--config", WriteFile(other)}),
                AllOf(HasSubstr("--config: "), HasSubstr(":1: ")));
  }
  EXPECT_THAT(Error({"--config", WriteFile("slots = 1\nslots = 2\n")}),
              AllOf(HasSubstr(":2: "), HasSubstr("slots")));
}

TEST_F(FlagsTest, UnderstandARateAsANumber) {
  EXPECT_EQ(Parse({"--trace-rate=0.25"}).records.trace_rate, 0.25);
  for (const char* text : {"trace-rate = 0.5", "trace-rate = \"0.5\""}) {
    const ServerFlags flags = Parse({"--config", WriteFile(text)});
    EXPECT_EQ(flags.records.trace_rate, 0.5) << text;
  }
}

TEST_F(FlagsTest, RareSettingsAreKeysOfTuning) {
  const ServerFlags flags = ParseTuning(
      "least-rate = 2.5\nmin-idle = \"1m30s\"\nmax-prompt-bytes = \"64KiB\"\n"
      "max-queue-tokens = 7\n");
  EXPECT_EQ(flags.scheduler.least_rate, 2.5);
  EXPECT_EQ(flags.scheduler.min_idle, absl::Seconds(90));
  EXPECT_EQ(flags.limits.prompt_bytes, 64 << 10);
  EXPECT_EQ(flags.scheduler.max_queued_tokens, 7);
  EXPECT_EQ(flags.scheduler.park_events, SchedulerOptions().park_events);
}

TEST_F(FlagsTest, OtherKeysAndValuesOfTuningAreErrors) {
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{
           {"spare-rows", "7"},
           {"max-rows", "0"},
           {"max-message-bytes", "1"},
           {"least-rate", "-0.1"},
           {"least-rate", "nan"},
           {"least-rate", "\"slow\""},
           {"min-idle", "[]"},
           {"slots", "1"}}) {
    EXPECT_THAT(TuningError(absl::StrCat(key, " = ", value)),
                HasSubstr(absl::StrCat("tuning.", key, ": ")))
        << value;
  }
  EXPECT_THAT(TuningError("max-row = 5"),
              HasSubstr("tuning.max-row: no such setting; did you mean "
                        "max-rows?"));
  EXPECT_THAT(TuningError("max-rows = 0"), HasSubstr("in 1..65536"));
  EXPECT_THAT(Error({"--config", WriteFile("tuning = 5")}),
              HasSubstr("tuning: no such setting"));
}

TEST_F(FlagsTest, ThatAreGoneSayWhereTheyWent) {
  const std::string moved =
      ": is park-events of the table [tuning] in the file of --config";
  EXPECT_EQ(Error({"--park-events", "7"}), "--park-events" + moved);
  EXPECT_THAT(Error({"--park-events=7"}), HasSubstr(moved));
  EXPECT_THAT(Error({"--config", WriteFile("park-events = 7")}),
              HasSubstr("park-events" + moved));
  const std::string constant = ": is a constant now, it cannot be set";
  EXPECT_EQ(Error({"--work-threads", "2"}), "--work-threads" + constant);
  EXPECT_THAT(TuningError("work-threads = 2"),
              HasSubstr("work-threads" + constant));
  {
    const Environment events("TXL_PARK_EVENTS", "7");
    EXPECT_EQ(Error({}), "TXL_PARK_EVENTS" + moved);
  }
  const Environment threads("TXL_WORK_THREADS", "2");
  EXPECT_EQ(Error({}), "TXL_WORK_THREADS" + constant);
}

TEST_F(FlagsTest, BoundHowLongSlowClientsAndFullServersAreWaitedFor) {
  const ServerFlags flags = Parse({"--queue-limit=5s", "--longest-turn=2m"});
  EXPECT_EQ(flags.scheduler.queue_limit, absl::Seconds(5));
  EXPECT_EQ(flags.scheduler.longest_turn, absl::Minutes(2));
}

TEST_F(FlagsTest, OutOfRangeAreErrorsThatNameTheFlag) {
  for (const auto& [flag, value] :
       std::vector<std::pair<std::string, std::string>>{
           {"--max-tokens", "0"},
           {"--max-tokens", "-1"},
           {"--max-tokens", "2147483648"},
           {"--max-tokens", "99999999999999999999"},
           {"--max-tokens", "many"},
           {"--slots", "1048577"},
           {"--slots", "-1"},
           {"--slot-memory", "-1"},
           {"--slot-memory", "lots"},
           {"--http-connections", "0"},
           {"--session-ttl", "0"},
           {"--session-ttl", "721h"},
           {"--session-ttl", "-5s"},
           {"--session-ttl", "90"},
           {"--trace-rate", "-0.1"},
           {"--trace-rate", "nan"},
           {"--trace-rate", "slow"},
           {"--queue-limit", "0"},
           {"--longest-turn", "0"},
           {"--listen", "50051"},
           {"--listen", "localhost:65536"},
           {"--listen", "unix:"},
           {"--log-level", "loud"},
           {"--log-format", "xml"},
           {"--socket-mode", "u+w"},
           {"--socket-mode", "4755"}}) {
    EXPECT_THAT(Error({flag, value}), HasSubstr(flag)) << value;
  }
}

TEST_F(FlagsTest, ThatAreUnknownAreErrors) {
  EXPECT_THAT(Error({"--no-such-flag"}), HasSubstr("--no-such-flag"));
  EXPECT_THAT(Error({"stray"}), HasSubstr("stray"));
}

TEST_F(FlagsTest, BadValuesOfTheEnvironmentNameTheVariableAndTheFlag) {
  const Environment slots("TXL_SLOTS", "x");
  EXPECT_THAT(Error({}), HasSubstr("TXL_SLOTS: --slots: 'x' is not"));
  EXPECT_THAT(Error({"--slots", "x"}), testing::StartsWith("--slots: 'x'"));
}

TEST_F(FlagsTest, AreGivenOnce) {
  EXPECT_EQ(Error({"--slots", "1", "--slots", "2"}), "--slots: is given twice");
}

TEST_F(FlagsTest, BadFilesAreErrorsThatNameTheKey) {
  const auto error = [&](const std::string& text) {
    return Error({"--config", WriteFile(text)});
  };
  EXPECT_THAT(error("max-tokns = 1"), HasSubstr("max-tokns"));
  EXPECT_THAT(error("max-tokens = 0"), HasSubstr("max-tokens"));
  EXPECT_THAT(error("max-tokens = 1.5"), HasSubstr("max-tokens"));
  EXPECT_THAT(error("[max-tokens]"), HasSubstr("max-tokens"));
  EXPECT_THAT(error("config = \"other\""), HasSubstr("config"));
  EXPECT_THAT(error("a = \n"), HasSubstr(":1"));
  EXPECT_THAT(Error({"--config", "/no/such/file"}), HasSubstr("--config"));
}

TEST_F(FlagsTest, ThatAreMisspeltGetTheNearestName) {
  EXPECT_THAT(Error({"--drain-timout", "5s"}),
              AllOf(HasSubstr("--drain-timout: no such setting"),
                    HasSubstr("did you mean --drain-timeout?")));
  EXPECT_THAT(
      Error({"--config", WriteFile("max-tokns = 1")}),
      HasSubstr("max-tokns: no such setting; did you mean max-tokens?"));
  const Environment misspelt("TXL_DRAIN_TIMOUT", "5s");
  EXPECT_THAT(Error({}), HasSubstr("TXL_DRAIN_TIMOUT: no such setting; did you "
                                   "mean TXL_DRAIN_TIMEOUT?"));
}

TEST_F(FlagsTest, VariablesOfOtherProgramsAreNoSettings) {
  const Environment client("TXL_SERVER", "127.0.0.1:1");
  const Environment proxy("TXL_PROXY_SERVER_1", "txl-1:50051");
  EXPECT_EQ(Parse({}).model, "m");
  const Environment none("TXL_NOTHING_LIKE_IT", "1");
  EXPECT_THAT(Error({}), HasSubstr("TXL_NOTHING_LIKE_IT: no such setting"));
}

TEST_F(FlagsTest, TakeAFileOnlyWhereItIsRegularAndNotLarge) {
  const std::string pipe = WriteFile("") + ".pipe";
  unlink(pipe.c_str());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(Error({"--config", pipe}), HasSubstr(pipe));
  unlink(pipe.c_str());
  EXPECT_THAT(Error({"--config", "/dev/zero"}), HasSubstr("/dev/zero"));
  EXPECT_THAT(Error({"--config", testing::TempDir()}), HasSubstr("--config"));
  const std::string large = WriteFile(std::string(kMaxConfigBytes + 1, '#'));
  EXPECT_THAT(Error({"--config", large}), HasSubstr(large));
}

TEST_F(FlagsTest, EndAHungOrDeafServerUnlessToldNotTo) {
  EXPECT_EQ(Parse({}).hang_limit, absl::Seconds(30));
  EXPECT_EQ(Parse({}).listener_limit, absl::Seconds(5));
  EXPECT_EQ(ParseTuning("listener-limit = 0").listener_limit,
            absl::ZeroDuration());
  EXPECT_EQ(ParseTuning("hang-limit = 0").hang_limit, absl::ZeroDuration());
}

TEST_F(FlagsTest, PrintConfigIsAFileThatGivesTheSameValues) {
  const auto printed = ParseFlags(
      {"--model", "a \"b\"", "--max-tokens=77", "--drain-timeout=1.5s",
       "--config", WriteFile("[tuning]\nmin-idle = '3s'"), "--print-config"});
  ASSERT_TRUE(printed.ok()) << printed.status();
  const std::string file = WriteFile(printed->print);
  const auto again = ParseFlags({"--config", file, "--print-config"});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->print, printed->print);
  EXPECT_THAT(printed->print, AllOf(HasSubstr("max-tokens = 77\n"),
                                    HasSubstr("drain-timeout = '1.5s'\n"),
                                    HasSubstr("min-idle = '3s'\n")));
}

TEST_F(FlagsTest, HelpStatesDefaultsAndVariables) {
  const auto help = ParseFlags({"--help"});
  ASSERT_TRUE(help.ok());
  EXPECT_THAT(help->print,
              AllOf(HasSubstr("127.0.0.1:50051"), HasSubstr("TXL_LISTEN"),
                    HasSubstr("8192"), HasSubstr("24h"),
                    HasSubstr("--step auto|native|torch"),
                    HasSubstr("SIZE, >= 0"), HasSubstr("Engine:\n")));
}

TEST_F(FlagsTest, CompletionAndManPageAreMadeOfTheFlags) {
  const auto completion = ParseFlags({"--completion", "bash"});
  ASSERT_TRUE(completion.ok());
  EXPECT_THAT(completion->print,
              AllOf(HasSubstr("--drain-timeout"), HasSubstr("absorbed")));
  const auto page = ParseFlags({"--man-page"});
  ASSERT_TRUE(page.ok());
  EXPECT_THAT(page->print, HasSubstr(".TH txl-server 1 "));
}

TEST_F(FlagsTest, WhatAValueMustBeIsSaid) {
  EXPECT_THAT(Error({"--step", "nativ"}),
              AllOf(HasSubstr("--step"), HasSubstr("auto, native, torch"),
                    HasSubstr("did you mean native?")));
  EXPECT_THAT(Error({"--http-connections", "0"}),
              AllOf(HasSubstr("--http-connections"), HasSubstr("in 1..65536")));
  EXPECT_THAT(Error({"--max-tokens", "many"}),
              HasSubstr("'many' is not a whole number"));
  EXPECT_THAT(Error({"--store-bytes", "1"}),
              AllOf(HasSubstr("--store-bytes"), HasSubstr("16MiB")));
}

TEST_F(FlagsTest, VersionNeedsNoModel) {
  const auto version = ParseFlags({"--version"});
  ASSERT_TRUE(version.ok());
  EXPECT_THAT(version->print, HasSubstr("txl-server "));
}

StepRunnerOptions ParseFormats(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--model", "m"});
  const auto parsed = ParseFlags(arguments);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? parsed->flags.runner : StepRunnerOptions();
}

TEST(FormatFlags, AreFloat32UnlessNamed) {
  const StepRunnerOptions plain = ParseFormats({});
  EXPECT_EQ(plain.weights, "f32");
  EXPECT_EQ(plain.products, "float");
  EXPECT_EQ(ParseFormats({"--derived=int8"}).derived, "int8");
}

TEST(FormatFlags, AQualitySetsThoseThatWereNotGiven) {
  const StepRunnerOptions fast = ParseFormats({"--quality", "fast"});
  EXPECT_EQ(fast.weights, "int8");
  EXPECT_EQ(fast.products, "int8");
  EXPECT_EQ(fast.memory, "int8");
  EXPECT_EQ(fast.derived, "int8");
  EXPECT_EQ(ParseFormats({"--quality=fast", "--memory=f32"}).memory, "f32");
  EXPECT_FALSE(ParseFlags({"--model", "m", "--quality=best"}).ok());
}

// From wherever a setting comes, it goes before the preset.
TEST(FormatFlags, AFilesSettingsGoBeforeTheQuality) {
  const std::string path = testing::TempDir() + "/format_flags.toml";
  std::ofstream(path) << "derived = 'bf16'\nquality = 'balanced'\n";
  const StepRunnerOptions balanced = ParseFormats({"--config", path});
  EXPECT_EQ(balanced.weights, "int8");
  EXPECT_EQ(balanced.products, "float");
  EXPECT_EQ(balanced.derived, "bf16");
}

}  // namespace

}  // namespace txl
