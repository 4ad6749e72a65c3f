// txl-model train: trains on one text, writes a model directory.

#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "model/base/status_macros.h"
#include "model/text/text_file.h"
#include "model/tool/command.h"
#include "model/tool/model_flags.h"
#include "model/tool/progress_bar.h"
#include "model/train/model_files.h"
#include "model/train/trainer.h"
#include "program/flag_checks.h"

namespace txl {
namespace {

constexpr int64_t kInt64Max = std::numeric_limits<int64_t>::max();

struct TrainFlags {
  std::string text, out;
  CorpusVocabulary vocabulary = CorpusVocabulary::kCharacters;
  double held_out = 0.1;
  int64_t serve_mem_len = -1;
  NormPlacement norm = NormPlacement::kPre;
  ModelConfig config;
  at::ScalarType dtype = at::kFloat;
  int threads = 2;
  bool overwrite = false;
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
}

void AddOptimisationFlags(CLI::App& app, TrainOptions& o) {
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
  add("--mem-len", o.memory, "memory rows per layer in training", AtLeast(0));
  add("--lr", o.schedule.peak, "peak learning rate", Above(0));
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
  std::cerr << absl::StrFormat(
      "step %d/%d  loss %.4f%s  lr %.2g  norm %.2f  %.0f tokens/s  eta "
      "%d:%02d\n",
      p.step, p.total_steps, p.loss,
      p.held_out ? absl::StrFormat("  held-out %.4f", *p.held_out) : "",
      p.learning_rate, p.gradient_norm, p.tokens_per_second, left / 60,
      left % 60);
}

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
  if (result.best_step > 0) {
    std::cerr << absl::StrFormat(": held-out %.4f nats per token at step %d",
                                 result.held_out, result.best_step);
  }
  std::cerr << "; model directory: " << f.out << "\n";
}

// Hours of training are not replaced by a flag that somebody forgot.
absl::Status CheckOut(const TrainFlags& f) {
  if (f.options.resume || f.overwrite) return absl::OkStatus();
  for (const char* file : {"/checkpoint.safetensors", "/model.safetensors"}) {
    std::error_code ignored;
    if (!std::filesystem::exists(f.out + file, ignored)) continue;
    return absl::AlreadyExistsError(absl::StrCat(
        "--out: ", f.out, file,
        " exists; --resume continues its run, --overwrite replaces it"));
  }
  return absl::OkStatus();
}

absl::Status RunTrain(TrainFlags& f) {
  TXL_RETURN_IF_ERROR(CheckOut(f));
  at::set_num_threads(f.threads);
  TXL_ASSIGN_OR_RETURN(const std::string file, ReadTextFile(f.text));
  absl::string_view text = file;
  if (f.vocabulary != CorpusVocabulary::kBytes) {
    TXL_ASSIGN_OR_RETURN(text, TextOfFile(file, f.text));
  }
  TXL_ASSIGN_OR_RETURN(const Corpus corpus,
                       MakeCorpus(text, f.vocabulary, f.held_out));
  TXL_ASSIGN_OR_RETURN(const ModelConfig config, ServedConfig(f, corpus));
  // A resumed run has them, and is refused if they were to change.
  if (!f.options.resume) {
    TXL_RETURN_IF_ERROR(WriteModelFiles(f.out, config, corpus));
  }
  f.options.checkpoint_dir = f.out;
  f.options.evaluation_shape = {f.options.shape.streams,
                                f.options.shape.segment};
  TrainCallbacks callbacks;
  callbacks.progress = PrintProgress;
  callbacks.best = [&](const Weights& weights, double) {
    return SaveWeights(weights, config, f.out + "/model.safetensors", f.dtype);
  };
  callbacks.stop = &InterruptFlag();
  std::cerr << absl::StrFormat(
      "%d training and %d held-out tokens, vocabulary of %d\n",
      corpus.train.size(), corpus.held_out.size(), corpus.vocab_size());
  TXL_ASSIGN_OR_RETURN(const TrainResult result,
                       Train(config, corpus, f.options, callbacks));
  PrintEnd(f, result);
  return absl::OkStatus();
}

}  // namespace

Command AddTrainCommand(CLI::App& app) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* sub = app.add_subcommand(
      "train", "Train a model on a text and write a model directory");
  sub->add_option("--text", flags->text,
                  "UTF-8 text (with --vocabulary bytes: any bytes)")
      ->required()
      ->check(CLI::ExistingFile);
  sub->add_option("--out", flags->out,
                  "model directory: weights of the lowest held-out loss, and "
                  "checkpoint.safetensors to resume from")
      ->required();
  AddNamedFlag(*sub, "--vocabulary", flags->vocabulary, VocabularyNames(), "");
  sub->add_option("--held-out", flags->held_out,
                  "share of the text, at its end, that is held out, below 1")
      ->check(Between(0, 1));
  AddNamedFlag(*sub, "--dtype", flags->dtype, DTypeNames(),
               "format of the written weights");
  sub->add_option("--threads", flags->threads, "number of threads")
      ->check(AtLeast(1));
  sub->add_option("--evaluate-every", flags->options.evaluate_every,
                  "steps between evaluations")
      ->check(AtLeast(1));
  sub->add_option("--checkpoint-every", flags->options.checkpoint_every,
                  "steps between checkpoints")
      ->check(AtLeast(1));
  sub->add_flag("--resume", flags->options.resume,
                "continue from OUT/checkpoint.safetensors");
  sub->add_flag("--overwrite", flags->overwrite,
                "replace the model and the checkpoint in OUT");
  AddModelFlags(*sub, *flags);
  AddOptimisationFlags(*sub, flags->options);
  return {sub, [flags] { return RunTrain(*flags); }};
}

}  // namespace txl
