// txl-model train: trains on one text, from nothing or on from a model, and
// writes a model directory.

#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "model/base/host_memory.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/model_directory.h"
#include "model/text/utf8.h"
#include "model/tool/command.h"
#include "model/tool/midi_corpus.h"
#include "model/tool/model_flags.h"
#include "model/tool/progress_bar.h"
#include "model/train/model_files.h"
#include "model/train/run_folder.h"
#include "model/train/trainer.h"
#include "model/train/training_log.h"
#include "program/flag_checks.h"

namespace txl {
namespace {

constexpr int64_t kInt64Max = std::numeric_limits<int64_t>::max();
// Of a model that is trained on; a new one has TrainOptions' own.
constexpr double kPeakOfStart = 2.5e-4;

struct TrainFlags {
  std::string from;       // model directory; empty: a new model
  std::string text, ids;  // files; one of them, or a folder of MIDI files
  MidiFolder midi;
  std::string unknown;  // "": not given
  std::string out;
  CorpusVocabulary vocabulary = CorpusVocabulary::kCharacters;
  double held_out = 0.1;
  int64_t serve_mem_len = -1;
  NormPlacement norm = NormPlacement::kPre;
  ModelConfig config;
  at::ScalarType dtype = at::kFloat;
  int threads = 2;
  bool overwrite = false;
  std::optional<double> peak;     // learning rate
  std::optional<int64_t> memory;  // in training
  TrainOptions options;

  TrainFlags() {
    config.n_layer = 5;
    config.n_head = 4;
    config.d_head = 64;
    config.d_model = 256;
    config.d_inner = 1024;
  }
};

// What the parser of config.json would say of a field, said of the flag.
CLI::Validator Width() { return WholeBetween(1, 1 << 20, kInt64Max); }
CLI::Validator Even() {
  return CLI::Validator(
      [](const std::string& text) {
        const bool even = !text.empty() && (text.back() - '0') % 2 == 0;
        return even ? "" : absl::StrCat(text, " is not even");
      },
      "");
}

CLI::Validator SomethingLeft() {
  return CLI::Validator(
      [](const std::string& text) {
        return FiniteNumber(text) < 1.0
                   ? ""
                   : absl::StrCat(text,
                                  " leaves nothing to train on; must be below "
                                  "1");
      },
      "");
}

// Flags of a new model: one that is trained on has its own.
void AddModelFlags(CLI::App& app, TrainFlags& f) {
  app.add_option("--layers", f.config.n_layer, "number of layers")
      ->check(WholeBetween(1, 4096, kInt64Max))
      ->group("Model");
  app.add_option("--d-model", f.config.d_model,
                 "width of the hidden states, even")
      ->check(Width())
      ->check(Even())
      ->group("Model");
  app.add_option("--heads", f.config.n_head, "attention heads of a layer")
      ->check(Width())
      ->group("Model");
  app.add_option("--d-head", f.config.d_head, "width of a head")
      ->check(Width())
      ->group("Model");
  app.add_option("--d-inner", f.config.d_inner,
                 "inner width of the feed-forward part")
      ->check(Width())
      ->group("Model");
  AddNamedFlag(app, "--norm", f.norm, NormNames(),
               "LayerNorm before (pre, with one after the last layer) or after "
               "(post) each block")
      ->group("Model");
  app.add_option("--serve-mem-len", f.serve_mem_len,
                 "memory length of the finished model, whose window is one "
                 "more; -1: as in training, segment + mem-len - 1")
      ->check(WholeBetween(-1, 1 << 24, kInt64Max))
      ->group("Model");
  AddNamedFlag(app, "--vocabulary", f.vocabulary, VocabularyNames(),
               "of a new model: all bytes, or the text's characters")
      ->group("Model");
  CLI::Option* from = app.get_option("--from");
  for (CLI::Option* option : app.get_options()) {
    if (option->get_group() == "Model") option->excludes(from);
  }
}

// What is trained on.
void AddSourceFlags(CLI::App& app, TrainFlags& f) {
  app.add_option("--text", f.text,
                 "UTF-8 text (where the vocabulary is of bytes: any bytes)")
      ->check(CLI::ExistingFile);
  CLI::Option* ids =
      app.add_option("--ids", f.ids,
                     "instead of --text: token ids as numbers parted by "
                     "whitespace; needs --from")
          ->check(CLI::ExistingFile);
  CLI::Option* midi =
      app.add_option("--midi", f.midi.path,
                     "instead of --text: a folder whose *.mid and *.midi, "
                     "also in folders below it, are trained on; needs --from, "
                     "a model of music")
          ->check(CLI::ExistingDirectory);
  app.add_flag("--skip-unreadable", f.midi.skip_unreadable,
               "leave files of --midi out that cannot be read")
      ->needs(midi);
  AddUnknownSymbolFlag(app, &f.unknown);
  app.get_option("--unknown")->excludes(ids)->excludes(midi);
}

void AddOptimisationFlags(CLI::App& app, TrainFlags& f) {
  TrainOptions& o = f.options;
  const auto add = [&app](const char* name, auto& value, const char* help,
                          const CLI::Validator& check) {
    app.add_option(name, value, help)->check(check)->group("Optimisation");
  };
  const CLI::Validator count = WholeBetween(1, kInt64Max, kInt64Max);
  const CLI::Validator share = Between(0, 1);
  add("--steps", o.schedule.total_steps,
      "steps of the whole run, over which the learning rate falls; a resumed "
      "run may have another number",
      count);
  add("--streams", o.shape.streams, "parallel streams of the text", count);
  add("--segment", o.shape.segment, "tokens of a stream per step", count);
  add("--mem-len", f.memory,
      "memory rows per layer in training [128; of --from: the model's]",
      AtLeast(0));
  add("--lr", f.peak, "peak learning rate [1e-3; of --from: 2.5e-4]", Above(0));
  add("--final-lr-share", o.schedule.final_share,
      "learning rate at the end, as a share of the peak", share);
  add("--warmup", o.schedule.warmup_steps, "steps until the peak", AtLeast(0));
  add("--beta2", o.adam.beta2, "decay of Adam's mean square", share);
  add("--weight-decay", o.adam.weight_decay, "weight decay of matrices",
      AtLeast(0));
  add("--clip", o.adam.clip_norm, "largest gradient norm", Above(0));
  add("--dropout", o.dropout, "dropout rate, below 1", share);
  add("--attention-dropout", o.attention_dropout,
      "dropout rate of attention weights, below 1", share);
  app.add_option("--seed", o.seed, "seed of weights, dropout and streams")
      ->group("Optimisation");
  app.add_flag("--bf16", o.bfloat16,
               "multiply in bfloat16: faster on processors that support it");
}

void PrintProgress(const TrainProgress& p) {
  const int64_t left = static_cast<int64_t>(p.seconds_left);
  const std::string held_out =
      p.held_out ? absl::StrFormat("  held-out %.4f", *p.held_out) : "";
  if (!p.loss) {
    std::cerr << absl::StrFormat("step %d/%d%s\n", p.step, p.total_steps,
                                 held_out);
    return;
  }
  std::cerr << absl::StrFormat(
      "step %d/%d  loss %.4f%s  lr %.2g  norm %.2f  %.0f tokens/s  eta "
      "%d:%02d\n",
      p.step, p.total_steps, *p.loss, held_out, p.learning_rate,
      p.gradient_norm, p.tokens_per_second, left / 60, left % 60);
}

// What is trained, and on what.
struct Task {
  ModelConfig config;
  Corpus corpus;
};

absl::StatusOr<ModelConfig> ServedConfig(const TrainFlags& f,
                                         const Corpus& corpus) {
  ModelConfig config = f.config;
  config.vocab_size = corpus.vocab_size();
  config.d_embed = config.d_model;
  config.norm = f.norm;
  config.final_norm = f.norm == NormPlacement::kPre;
  config.tie_weight = true;
  config.tie_projs = {false};
  config.mem_len = f.serve_mem_len >= 0
                       ? f.serve_mem_len
                       : f.options.shape.segment + f.options.memory - 1;
  config.window = config.mem_len + 1;
  // One home for the checks of a configuration: its parser.
  return ParseModelConfig(ModelConfigToJson(config), "flags");
}

void PrintEnd(const TrainFlags& f, const TrainResult& result) {
  if (result.stopped) {
    std::cerr << absl::StrFormat(
        "stopped at step %d; the same command with --resume continues\n",
        result.steps);
    return;
  }
  std::cerr << absl::StrFormat("done in %.0f s", result.seconds);
  if (result.held_out > 0) {
    std::cerr << absl::StrFormat(": held-out %.4f nats per token at step %d",
                                 result.held_out, result.best_step);
  }
  std::cerr << "; model directory: " << f.out << "\n";
}

const char* WhyNotResumed(FolderContent content) {
  switch (content) {
    case FolderContent::kNothing:
      return " holds no run; without --resume one begins";
    case FolderContent::kOther:
      return " is not the folder of a training run";
    default:
      return " has no checkpoint.safetensors, so there is nothing to resume; "
             "--overwrite instead begins again";
  }
}

const char* WhyNotReplaced(FolderContent content) {
  switch (content) {
    case FolderContent::kCheckpoint:
      return " exists; --resume continues its run, --overwrite replaces it";
    case FolderContent::kOther:
      return " exists, is not empty and not the folder of a training run; "
             "--overwrite trains there beside its files";
    default:
      return " exists without a checkpoint, so there is nothing to resume; "
             "--overwrite begins again and replaces its model";
  }
}

// Hours of training are not replaced by a flag that somebody forgot.
absl::Status CheckOut(const TrainFlags& f) {
  std::error_code ignored;
  if (!f.from.empty() && std::filesystem::equivalent(f.from, f.out, ignored)) {
    return absl::InvalidArgumentError(
        "--out: is the model of --from, which stays as it is");
  }
  TXL_RETURN_IF_ERROR(CheckReplacesNone(ModelFiles(f.out), {f.text, f.ids}));
  const FolderContent content = ContentOf(f.out);
  if (f.options.resume) {
    return content == FolderContent::kCheckpoint
               ? absl::OkStatus()
               : absl::NotFoundError(
                     absl::StrCat("--resume: ", f.out, WhyNotResumed(content)));
  }
  if (f.overwrite || content == FolderContent::kNothing) {
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(
      absl::StrCat("--out: ", f.out, WhyNotReplaced(content)));
}

absl::Status CheckFlags(const TrainFlags& f) {
  const int given = !f.text.empty() + !f.ids.empty() + !f.midi.path.empty();
  if (given != 1) {
    return absl::InvalidArgumentError(
        given == 0 ? "one of --text, --ids and --midi is needed"
                   : "only one of --text, --ids and --midi can be given");
  }
  if (f.from.empty() && (f.text.empty() || !f.unknown.empty())) {
    return absl::InvalidArgumentError(
        "--ids, --midi and --unknown need --from, whose vocabulary they are "
        "of");
  }
  return absl::OkStatus();
}

// A new model, of the text's own vocabulary.
absl::StatusOr<Task> NewModel(TrainFlags& f) {
  f.options.memory = f.memory.value_or(f.options.memory);
  f.options.schedule.peak = f.peak.value_or(f.options.schedule.peak);
  TXL_ASSIGN_OR_RETURN(const std::string file, ReadTextFile(f.text));
  absl::string_view text = file;
  if (f.vocabulary != CorpusVocabulary::kBytes) {
    TXL_ASSIGN_OR_RETURN(text, TextOfFile(file, f.text));
  }
  if (text.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(f.text, ": is empty"));
  }
  Task task;
  TXL_ASSIGN_OR_RETURN(task.corpus, MakeCorpus(text, f.vocabulary, f.held_out));
  TXL_ASSIGN_OR_RETURN(task.config, ServedConfig(f, task.corpus));
  return task;
}

// The ids to train on, in the vocabulary of the model that is trained on.
absl::StatusOr<std::vector<int64_t>> IdsOf(const TrainFlags& f,
                                           const ModelDirectory& model) {
  if (!f.ids.empty()) {
    TXL_ASSIGN_OR_RETURN(const std::string file, ReadTextFile(f.ids));
    TXL_ASSIGN_OR_RETURN(const absl::string_view text, TextOfFile(file, f.ids));
    return ParseIds(text, model.config.vocab_size, f.ids);
  }
  if (model.vocabulary == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(f.from, ": has no tokenizer.json, so it needs --ids"));
  }
  if (!f.midi.path.empty()) {
    return IdsOfMidiFolder(f.midi, *model.vocabulary, std::cerr);
  }
  TXL_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                       IdsOfFile(f.text, *model.vocabulary, f.unknown));
  return std::vector<int64_t>(ids.begin(), ids.end());
}

absl::StatusOr<Task> ModelOfFrom(TrainFlags& f) {
  TXL_ASSIGN_OR_RETURN(const ModelDirectory model, OpenModelDirectory(f.from));
  TXL_ASSIGN_OR_RETURN(std::vector<int64_t> ids, IdsOf(f, model));
  if (ids.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(f.text, f.ids, ": holds nothing to train on"));
  }
  f.options.memory = f.memory.value_or(model.config.mem_len);
  f.options.schedule.peak = f.peak.value_or(kPeakOfStart);
  TXL_ASSIGN_OR_RETURN(Weights weights, LoadDirectoryWeights(model, {}));
  f.options.start = TrainingStart{std::move(weights), model.fingerprint};
  return Task{model.config, SplitIds(std::move(ids), f.held_out)};
}

// Blames the share for a text that would do without it. A token without a next
// one teaches nothing.
absl::Status CheckHeldOut(const TrainFlags& f, const Corpus& corpus) {
  const auto left = static_cast<int64_t>(corpus.train.size());
  const auto all = left + static_cast<int64_t>(corpus.held_out.size());
  const StreamShape& shape = f.options.shape;
  const bool too_few =
      !CheckStreams(left, shape).ok() && CheckStreams(all, shape).ok();
  if (left == all || (left > 1 && !too_few)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--held-out: ", f.held_out, " of ", all, " tokens leaves ",
      left > 1 ? absl::StrCat(left, ", too few for --streams and --segment")
               : "nothing to train on"));
}

absl::Status CheckMemory(const Task& task, const TrainOptions& options) {
  const int64_t needed = TrainingBytes(task.config, options);
  const std::optional<int64_t> available = AvailableHostBytes();
  if (!available || needed <= *available) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "training needs at least %.1f GiB and this machine has %.1f GiB left; "
      "lower --streams, --segment or --mem-len",
      std::ldexp(static_cast<double>(needed), -30),
      std::ldexp(static_cast<double>(*available), -30)));
}

// A resumed run has its files, and is refused if they were to change.
absl::Status WriteFiles(const TrainFlags& f, const Task& task) {
  if (f.options.resume) return RemoveTemporaryFiles(f.out);
  TXL_RETURN_IF_ERROR(RemoveRunFiles(f.out));
  if (!f.from.empty()) return CopyModelFiles(f.from, f.out);
  return WriteModelFiles(f.out, task.config, task.corpus);
}

// OUT for this run alone until it ends. Null: there is no such folder, and it
// is not to be made yet.
absl::StatusOr<std::unique_ptr<RunLock>> LockOut(const TrainFlags& f,
                                                 bool make) {
  std::error_code ignored;
  absl::StatusOr<std::unique_ptr<RunLock>> lock = nullptr;
  if (make || std::filesystem::exists(f.out, ignored)) {
    lock = RunLock::Take(f.out);
  }
  if (!lock.ok()) {
    return absl::Status(lock.status().code(),
                        absl::StrCat("--out: ", lock.status().message()));
  }
  TXL_RETURN_IF_ERROR(CheckOut(f));
  return lock;
}

absl::Status RunTrain(TrainFlags& f) {
  TXL_RETURN_IF_ERROR(CheckFlags(f));
  TXL_ASSIGN_OR_RETURN(std::unique_ptr<RunLock> lock,
                       LockOut(f, /*make=*/false));
  at::set_num_threads(f.threads);
  TXL_ASSIGN_OR_RETURN(const Task task,
                       f.from.empty() ? NewModel(f) : ModelOfFrom(f));
  TXL_RETURN_IF_ERROR(CheckHeldOut(f, task.corpus));
  TXL_RETURN_IF_ERROR(CheckTraining(task.config, task.corpus, f.options));
  TXL_RETURN_IF_ERROR(CheckMemory(task, f.options));
  if (lock == nullptr) {
    TXL_ASSIGN_OR_RETURN(lock, LockOut(f, /*make=*/true));
  }
  TXL_RETURN_IF_ERROR(WriteFiles(f, task));
  f.options.checkpoint_dir = f.out;
  f.options.evaluation_shape = {f.options.shape.streams,
                                f.options.shape.segment};
  TrainingLog log(f.out, f.options.resume);
  TrainCallbacks callbacks;
  callbacks.progress = [&](const TrainProgress& progress) {
    PrintProgress(progress);
    const absl::Status logged = log.Add(progress);
    if (!logged.ok()) std::cerr << "warning: " << logged.message() << "\n";
  };
  callbacks.best = [&](const Weights& weights, double) {
    return SaveWeights(weights, task.config, f.out + "/model.safetensors",
                       f.dtype);
  };
  callbacks.stop = &InterruptFlag();
  std::cerr << absl::StrFormat(
      "%d training and %d held-out tokens, vocabulary of %d\n",
      task.corpus.train.size(), task.corpus.held_out.size(),
      task.config.vocab_size);
  TXL_ASSIGN_OR_RETURN(const TrainResult result,
                       Train(task.config, task.corpus, f.options, callbacks));
  PrintEnd(f, result);
  return absl::OkStatus();
}

}  // namespace

Command AddTrainCommand(CLI::App& app) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* sub = app.add_subcommand(
      "train",
      "Train a model on a text, a new one or on from a model, and write a "
      "model directory");
  sub->add_option("--from", flags->from,
                  "model directory to train on from, with its vocabulary, "
                  "memory and window; it stays as it is")
      ->check(CLI::ExistingDirectory);
  AddSourceFlags(*sub, *flags);
  sub->add_option("--out", flags->out,
                  "model directory: weights of the lowest held-out loss, "
                  "checkpoint.safetensors to resume from, log.jsonl and "
                  "losses.svg")
      ->required();
  sub->add_option("--held-out", flags->held_out,
                  "share of the text, at its end, that is held out, below 1")
      ->check(Between(0, 1))
      ->check(SomethingLeft());
  AddNamedFlag(*sub, "--dtype", flags->dtype, DTypeNames(),
               "format of the written weights");
  sub->add_option("--threads", flags->threads, "number of threads")
      ->check(Between(1, kMaxThreads));
  sub->add_option("--log-every", flags->options.log_every,
                  "steps between reports")
      ->check(AtLeast(1));
  sub->add_option("--evaluate-every", flags->options.evaluate_every,
                  "steps between evaluations")
      ->check(AtLeast(1));
  sub->add_option("--checkpoint-every", flags->options.checkpoint_every,
                  "steps between checkpoints")
      ->check(AtLeast(1));
  CLI::Option* resume =
      sub->add_flag("--resume", flags->options.resume,
                    "continue from OUT/checkpoint.safetensors");
  sub->add_flag("--overwrite", flags->overwrite,
                "replace the model and the checkpoint in OUT")
      ->excludes(resume);
  AddModelFlags(*sub, *flags);
  AddOptimisationFlags(*sub, *flags);
  return {sub, [flags] { return RunTrain(*flags); }};
}

}  // namespace txl
