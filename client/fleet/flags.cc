#include "client/fleet/flags.h"

#include <CLI/CLI.hpp>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "program/flag_checks.h"

namespace txl::fleet {
namespace {

// A flag with the group and the default that all here have.
template <typename T>
CLI::Option* Add(CLI::App& program, const std::string& group,
                 const std::string& name, T& value, const std::string& help) {
  return program.add_option(name, value, help)
      ->capture_default_str()
      ->group(group);
}

void AddFleetFlags(CLI::App& program, Flags* flags) {
  const std::string group = "Fleet";
  Add(program, group, "--servers", flags->servers, "a multiple of the cells")
      ->check(Between(1, 1'000'000));
  Add(program, group, "--sessions", flags->sessions, "that are stored")
      ->check(AtLeast(1));
  Add(program, group, "--cells", flags->cells,
      "parts that share nothing: each has a proxy, shards and images")
      ->check(Between(1, 100'000));
  Add(program, group, "--sample", flags->sample,
      "cells that are simulated and stand for all, 0: every one")
      ->check(AtLeast(0));
}

void AddServerFlags(CLI::App& program, Flags* flags) {
  const std::string group = "A server's costs";
  Add(program, group, "--step", flags->steps,
      "STREAMS:SECONDS of a step, growing; between them straight lines");
  Add(program, group, "--prompt-row-seconds", flags->prompt_row_seconds,
      "of each row of a prompt")
      ->check(Above(0));
  Add(program, group, "--prompt-rows-per-step", flags->prompt_rows_per_step,
      "as the server's flag")
      ->check(AtLeast(1));
  Add(program, group, "--slots", flags->slots, "sessions on the device")
      ->check(Between(1, 1'000'000));
  Add(program, group, "--local-images", flags->local_images,
      "state images in a server's memory or on its disk")
      ->check(AtLeast(0));
  Add(program, group, "--local-read-seconds", flags->local_read_seconds,
      "until one of them is in a slot")
      ->check(AtLeast(0));
  Add(program, group, "--rebuild-rows", flags->rebuild_rows,
      "rows that a state without an image is rebuilt from, at most")
      ->check(AtLeast(1));
}

void AddImageFlags(CLI::App& program, Flags* flags) {
  const std::string group = "Images that a cell's servers share";
  SharedImages& images = flags->images;
  program.add_flag("--shared-images", images.on, "there are such images")
      ->group(group);
  Add(program, group, "--image-bytes", images.bytes, "of one")
      ->check(AtLeast(0));
  Add(program, group, "--image-read-seconds", images.read_seconds,
      "until it is in a slot, without its transfer")
      ->check(AtLeast(0));
  Add(program, group, "--image-bandwidth", images.bytes_per_second,
      "bytes a second that a cell reads and writes")
      ->check(Above(0));
  Add(program, group, "--snapshot-tokens", images.snapshot_tokens,
      "a turn's end writes an image where the last one is so old, 0: only "
      "leaving a slot does")
      ->check(AtLeast(0));
}

void AddStoreFlags(CLI::App& program, Flags* flags) {
  const std::string group = "The store";
  ShardOptions& store = flags->store;
  Add(program, group, "--shards", store.shards, "primaries of a cell")
      ->check(Between(1, 10'000));
  Add(program, group, "--commit-seconds", store.costs.commit_seconds,
      "of a sync, which all commands that wait share; 0: nobody waits for it")
      ->check(AtLeast(0));
  Add(program, group, "--command-seconds", store.costs.command_seconds,
      "of each command")
      ->check(Above(0));
  Add(program, group, "--command-bytes", store.command_bytes, "of a command")
      ->check(AtLeast(0));
  Add(program, group, "--token-bytes", store.token_bytes, "of each token in it")
      ->check(AtLeast(0));
  Add(program, group, "--append-tokens", store.append_tokens,
      "a stream appends after so many tokens")
      ->check(AtLeast(1));
  Add(program, group, "--append-seconds", store.append_seconds,
      "or after such a time")
      ->check(Above(0));
  Add(program, group, "--upkeep-seconds", store.upkeep_seconds,
      "how often a server asks for expired sessions, and keeps a turn that "
      "tells nothing; 0: never")
      ->check(AtLeast(0));
}

void AddLoadFlags(CLI::App& program, Flags* flags) {
  const std::string group = "Load";
  const std::string distribution =
      ": N, uniform:LOW:HIGH, exponential:MEAN[:MAX] or "
      "lognormal:MEDIAN:SIGMA:MAX";
  Add(program, group, "--conversations", flags->conversations,
      "that begin in a second")
      ->check(Above(0));
  Add(program, group, "--turns", flags->turns, "of one" + distribution);
  Add(program, group, "--think", flags->think_seconds,
      "seconds between two of them" + distribution);
  Add(program, group, "--prompt-tokens", flags->prompt_tokens,
      "of a turn" + distribution);
  Add(program, group, "--answer-tokens", flags->answer_tokens,
      "of a turn" + distribution);
  Add(program, group, "--session-tokens", flags->session_tokens,
      "of a session before its first turn here" + distribution);
  Add(program, group, "--zipf", flags->zipf_exponent,
      "exponent of how often which session is used, 0: all alike")
      ->check(Between(0, 10));
}

void AddFailureFlags(CLI::App& program, Flags* flags) {
  const std::string group = "Failures";
  Recovery& recovery = flags->recovery;
  program
      .add_option("--fail", flags->failures,
                  "AT:SERVERS:FOR[:silent] so many servers of every simulated "
                  "cell stop at a time and are back later (seconds); silent: "
                  "without resetting connections [default: none]")
      ->group(group);
  Add(program, group, "--detect-seconds", recovery.detect_seconds,
      "until the proxy sends nothing more to a lost server")
      ->check(AtLeast(0));
  Add(program, group, "--stall-seconds", recovery.stall_seconds,
      "after which clients give up a silent stream")
      ->check(AtLeast(0));
}

void AddRunFlags(CLI::App& program, Flags* flags) {
  const std::string group = "Run";
  Add(program, group, "--warm", flags->warm_conversations,
      "conversations before the start, which fill slots and images")
      ->check(AtLeast(0));
  Add(program, group, "--warmup", flags->warmup_seconds,
      "seconds at the start that are not counted")
      ->check(AtLeast(0));
  Add(program, group, "--seconds", flags->seconds, "that are counted")
      ->check(Above(0));
  Add(program, group, "--seed", flags->seed, "the same for the same figures");
  program.add_flag("--json", flags->json, "Print one line of JSON")
      ->group(group);
}

absl::StatusOr<Failure> ParseFailure(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  Failure failure;
  const bool silent = parts.size() == 4 && parts[3] == "silent";
  if (!(parts.size() == 3 || silent) ||
      !absl::SimpleAtod(parts[0], &failure.at_seconds) ||
      !absl::SimpleAtoi(parts[1], &failure.servers) ||
      !absl::SimpleAtod(parts[2], &failure.for_seconds) ||
      !(failure.at_seconds >= 0) || failure.servers < 1 ||
      !(failure.for_seconds >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--fail: '", text, "' is not AT:SERVERS:FOR[:silent]"));
  }
  failure.silent = silent;
  return failure;
}

absl::Status Named(const char* flag, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", status.message()));
}

absl::Status ReadMix(const Flags& flags, TurnMix* mix) {
  const std::vector<
      std::tuple<const char*, const std::string*, bench::Distribution*>>
      distributions = {
          {"--turns", &flags.turns, &mix->turns},
          {"--think", &flags.think_seconds, &mix->think_seconds},
          {"--prompt-tokens", &flags.prompt_tokens, &mix->prompt_tokens},
          {"--answer-tokens", &flags.answer_tokens, &mix->answer_tokens},
          {"--session-tokens", &flags.session_tokens, &mix->session_tokens}};
  for (const auto& [flag, text, distribution] : distributions) {
    absl::StatusOr<bench::Distribution> parsed =
        bench::Distribution::Parse(*text);
    if (!parsed.ok()) return Named(flag, parsed.status());
    *distribution = *std::move(parsed);
  }
  mix->conversations_per_second = flags.conversations / flags.cells;
  mix->sessions = flags.sessions / flags.cells;
  mix->zipf_exponent = flags.zipf_exponent;
  return absl::OkStatus();
}

}  // namespace

// Costs of Redis as docs/scaling.md has them.
Flags::Flags() {
  store.costs.commit_seconds = 0.0038;
  store.costs.command_seconds = 13e-6;
  store.command_bytes = 200;
  store.token_bytes = 5;
  images.bytes = 59e6;
  images.bytes_per_second = 12.5e9;
}

void AddFlags(CLI::App& program, Flags* flags) {
  program.set_config("--config", "", "file of flags, in TOML: slots = 64");
  program.allow_config_extras(CLI::config_extras_mode::error);
  AddFleetFlags(program, flags);
  AddServerFlags(program, flags);
  AddImageFlags(program, flags);
  AddStoreFlags(program, flags);
  AddLoadFlags(program, flags);
  AddFailureFlags(program, flags);
  AddRunFlags(program, flags);
}

absl::StatusOr<FleetOptions> MakeFleet(const Flags& flags) {
  if (flags.servers % flags.cells != 0 || flags.sessions < flags.cells) {
    return absl::InvalidArgumentError(
        "--cells: servers cannot be shared out evenly, or sessions not at all");
  }
  absl::StatusOr<StepCosts> steps = StepCosts::Parse(flags.steps);
  if (!steps.ok()) return Named("--step", steps.status());
  FleetOptions fleet;
  fleet.cells = flags.cells;
  fleet.sample = flags.sample == 0 ? flags.cells : flags.sample;
  CellOptions& cell = fleet.cell;
  cell.server.device = {*std::move(steps), flags.prompt_row_seconds,
                        flags.prompt_rows_per_step};
  cell.servers = flags.servers / flags.cells;
  cell.server.slots = flags.slots;
  cell.server.local_images = flags.local_images;
  cell.server.local_read_seconds = flags.local_read_seconds;
  cell.server.rebuild_rows = flags.rebuild_rows;
  cell.images = flags.images;
  cell.store = flags.store;
  cell.recovery = flags.recovery;
  for (const std::string& text : flags.failures) {
    absl::StatusOr<Failure> failure = ParseFailure(text);
    if (!failure.ok()) return failure.status();
    cell.recovery.failures.push_back(*failure);
  }
  const absl::Status mix = ReadMix(flags, &cell.mix);
  if (!mix.ok()) return mix;
  cell.warm_conversations = flags.warm_conversations / flags.cells;
  cell.warmup_seconds = flags.warmup_seconds;
  cell.seconds = flags.seconds;
  cell.seed = flags.seed;
  return fleet;
}

}  // namespace txl::fleet
