// txl-model train: trains on one text, writes a model directory.

#include <ATen/Parallel.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "model/base/status_macros.h"
#include "model/tool/command.h"
#include "model/tool/flag_values.h"
#include "model/tool/interrupt.h"
#include "model/train/model_files.h"
#include "model/train/trainer.h"

namespace txl {
namespace {

struct TrainFlags {
  std::string text, out;
  CorpusVocabulary vocabulary = CorpusVocabulary::kCharacters;
  double held_out = 0.1;
  int64_t serve_mem_len = -1;
  NormPlacement norm = NormPlacement::kPre;
  ModelConfig config;
  at::ScalarType dtype = at::kFloat;
  int threads = 2;
  TrainOptions options;

  TrainFlags() {
    config.n_layer = 5;
    config.n_head = 4;
    config.d_head = 64;
    config.d_model = 256;
    config.d_inner = 1024;
  }
};

void AddModelFlags(CLI::App& app, TrainFlags& f) {
  app.add_option("--layers", f.config.n_layer)->group("Model");
  app.add_option("--d-model", f.config.d_model)->group("Model");
  app.add_option("--heads", f.config.n_head)->group("Model");
  app.add_option("--d-head", f.config.d_head)->group("Model");
  app.add_option("--d-inner", f.config.d_inner)->group("Model");
  AddNamedFlag(app, "--norm", f.norm, NormNames(),
               "LayerNorm before (pre, with one after the last layer) or after "
               "(post) each block")
      ->group("Model");
  app.add_option("--serve-mem-len", f.serve_mem_len,
                 "memory of the finished model, its window one more; -1: what "
                 "training saw, segment + mem-len - 1")
      ->group("Model");
}

void AddOptimisationFlags(CLI::App& app, TrainOptions& o) {
  const char* group = "Optimisation";
  app.add_option("--steps", o.schedule.total_steps)->group(group);
  app.add_option("--streams", o.shape.streams, "texts read side by side")
      ->group(group);
  app.add_option("--segment", o.shape.segment, "tokens of a stream per step")
      ->group(group);
  app.add_option("--mem-len", o.memory, "memory rows per layer in training")
      ->group(group);
  app.add_option("--lr", o.schedule.peak, "peak learning rate")->group(group);
  app.add_option("--final-lr-share", o.schedule.final_share,
                 "learning rate at the end, as a share of the peak")
      ->group(group);
  app.add_option("--warmup", o.schedule.warmup_steps, "steps")->group(group);
  app.add_option("--beta2", o.adam.beta2)->group(group);
  app.add_option("--weight-decay", o.adam.weight_decay)->group(group);
  app.add_option("--clip", o.adam.clip_norm, "largest gradient norm")
      ->group(group);
  app.add_option("--dropout", o.dropout)->group(group);
  app.add_option("--attention-dropout", o.attention_dropout)->group(group);
  app.add_option("--seed", o.seed)->group(group);
  app.add_flag("--bf16", o.bfloat16,
               "products in bfloat16: faster where the processor has them");
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
        "stopped at step %d; the same command with --resume goes on\n",
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

absl::Status RunTrain(TrainFlags& f) {
  at::set_num_threads(f.threads);
  TXL_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(f.text));
  TXL_ASSIGN_OR_RETURN(const Corpus corpus,
                       MakeCorpus(text, f.vocabulary, f.held_out));
  TXL_ASSIGN_OR_RETURN(const ModelConfig config, ServedConfig(f, corpus));
  TXL_RETURN_IF_ERROR(WriteModelFiles(f.out, config, corpus));
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
      "train", "trains a model on a text; writes a model directory");
  sub->add_option("--text", flags->text, "UTF-8 text (any bytes for bytes)")
      ->required()
      ->check(CLI::ExistingFile);
  sub->add_option("--out", flags->out,
                  "model directory: weights of the lowest held-out loss, and "
                  "checkpoint.safetensors to resume from")
      ->required();
  AddNamedFlag(*sub, "--vocabulary", flags->vocabulary, VocabularyNames(), "");
  sub->add_option("--held-out", flags->held_out,
                  "share of the text, its end, that is not trained on");
  AddNamedFlag(*sub, "--dtype", flags->dtype, DTypeNames(),
               "of the written weights");
  sub->add_option("--threads", flags->threads)->check(AtLeast(1));
  sub->add_option("--evaluate-every", flags->options.evaluate_every, "steps");
  sub->add_option("--checkpoint-every", flags->options.checkpoint_every,
                  "steps");
  sub->add_flag("--resume", flags->options.resume,
                "goes on from OUT/checkpoint.safetensors");
  AddModelFlags(*sub, *flags);
  AddOptimisationFlags(*sub, flags->options);
  return {sub, [flags] { return RunTrain(*flags); }};
}

}  // namespace txl
