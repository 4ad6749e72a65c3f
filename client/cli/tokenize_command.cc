// txl tokenize: text or a MIDI file to token ids, and back to text.

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cli/long_text.h"
#include "client/cli/midi_file.h"
#include "client/cli/output.h"
#include "program/command_line.h"
#include "program/flag_checks.h"

namespace txl::cli {
namespace {

struct TokenizeFlags {
  ServerFlags server;
  std::string text;
  std::string midi_file;  // empty: none
  std::string unknown;    // "": not given
  std::vector<uint32_t> ids;
  bool json = false;
};

int Decode(Client& client, const TokenizeFlags& flags) {
  v1::DetokenizeRequest request;
  request.mutable_token_ids()->Assign(flags.ids.begin(), flags.ids.end());
  const absl::StatusOr<v1::DetokenizeResponse> response =
      client.Detokenize(request, flags.server.call_options());
  if (!response.ok()) return Fail(response.status());
  WriteOut(flags.json ? ToJson(*response) + "\n" : response->text());
  return kDone;
}

int Print(const v1::TokenizeResponse& response, const TokenizeFlags& flags) {
  WriteOut(absl::StrCat(
      flags.json ? ToJson(response) : absl::StrJoin(response.token_ids(), ","),
      "\n"));
  return kDone;
}

int EncodeMidi(Client& client, const TokenizeFlags& flags) {
  const auto music =
      TokenizeMidi(client, flags.midi_file, flags.server.call_options());
  return music.ok() ? Print(*music, flags) : Fail(music.status());
}

int Encode(Client& client, const TokenizeFlags& flags) {
  const absl::StatusOr<std::string> text =
      flags.text == "-" ? ReadInput("-") : flags.text;
  if (!text.ok()) return FailInput(text.status());
  const auto ids = TokenizeAll(client, *text, UnknownTextOf(flags.unknown),
                               flags.server.call_options());
  if (!ids.ok()) return Fail(ids.status());
  v1::TokenizeResponse response;
  response.mutable_token_ids()->Assign(ids->begin(), ids->end());
  return Print(response, flags);
}

}  // namespace

void AddTokenizeCommand(CLI::App& program, Run* run) {
  CLI::App* command = program.add_subcommand(
      "tokenize",
      "Print the token ids of a text or a MIDI file, or the text of token ids");
  auto flags = std::make_shared<TokenizeFlags>();
  AddServerFlags(*command, &flags->server);
  CLI::Option* text = command->add_option("TEXT", flags->text,
                                          "text to encode, -: standard input");
  text->check(SentText());
  AddUnknownFlag(*command, &flags->unknown);
  CLI::Option* decode =
      AddNumbers(*command, "--decode", &flags->ids,
                 "comma-separated token ids to decode [default: none]")
          ->excludes(text);
  CLI::Option* midi = command
                          ->add_option("--midi", flags->midi_file,
                                       "MIDI file to encode, -: standard input "
                                       "[default: none]")
                          ->type_name("FILE")
                          ->excludes(text)
                          ->excludes(decode);
  command->add_flag("--json", flags->json,
                    "print the response as a line of JSON [default: off]");
  command->callback([run, flags, text, decode, midi] {
    if (text->empty() && decode->empty() && midi->empty()) {
      throw CLI::RequiredError("TEXT, --midi or --decode");
    }
    const auto act = !decode->empty() ? Decode
                     : !midi->empty() ? EncodeMidi
                                      : Encode;
    *run = [flags, act] {
      return WithClient(flags->server,
                        [&](Client& client) { return act(client, *flags); });
    };
  });
}

}  // namespace txl::cli
