// MIDI files as input of Tokenize.

#include <gmock/gmock.h>

#include "server/api/convert_input.h"
#include "tests/server/api/music_model.h"

namespace txl {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

v1::TokenizeRequest MidiRequest(const std::string& midi) {
  v1::TokenizeRequest request;
  request.set_midi(midi);
  return request;
}

absl::StatusOr<MidiIds> ReadRemi(const v1::TokenizeRequest& request,
                                 const RequestLimits& limits = {}) {
  return ReadMidi(request, ModelOf(RemiVocabulary()), limits);
}

constexpr char kNotMusic[] = "INVALID_ARGUMENT FIELD_INVALID midi";

TEST(ReadMidi, GivesTheEventsOfTheFile) {
  const auto music = ReadRemi(MidiRequest(kOneNote));
  ASSERT_TRUE(music.ok()) << music.status();
  EXPECT_EQ(music->ids, kOneNoteIds);
  EXPECT_THAT(music->left_out, IsEmpty());
}

TEST(ReadMidi, TellsWhatTheVocabularyLacks) {
  const auto music = ReadRemi(MidiRequest(kUnknownNote));
  ASSERT_TRUE(music.ok()) << music.status();
  EXPECT_EQ(music->ids, kOneNoteIds);
  ASSERT_THAT(music->left_out, SizeIs(1));
  EXPECT_EQ(music->left_out[0].what, "Note On_109");
  EXPECT_EQ(music->left_out[0].count, 1);
}

TEST(ReadMidi, EndsBeforeTheEndOfThePieceSoThatItCanBeContinued) {
  const SymbolVocabulary vocabulary(
      "events",
      {"Bar_None", "Beat_0", "Beat_4", "Note_Pitch_60", "Note_Velocity_64",
       "Note_Duration_480", "EOS_None"},
      SymbolRules());
  const auto music = ReadMidi(MidiRequest(MidiOf(NoteOf(60) + NoteOf(60))),
                              ModelOf(vocabulary), {});
  ASSERT_TRUE(music.ok()) << music.status();
  EXPECT_THAT(music->ids, Contains(3).Times(2));
  EXPECT_THAT(music->ids, Not(Contains(6)));
  EXPECT_EQ(music->ids.back(), 0);  // a bar that is still empty
}

TEST(ReadMidi, RefusesWhatIsNoMusic) {
  for (const std::string& file :
       {std::string(), std::string("ROMEO: But soft"), std::string(9000, '\0'),
        kOneNote.substr(0, 4), kOneNote.substr(0, 20),
        kOneNote.substr(0, kOneNote.size() - 1), MidiOf("")}) {
    const auto music = ReadRemi(MidiRequest(file));
    EXPECT_EQ(Refusal(music), kNotMusic) << file.size();
    EXPECT_THAT(std::string(music.status().message()), SizeIs(testing::Gt(12)));
  }
}

TEST(ReadMidi, IsOfModelsOfMusicAlone) {
  const Vocabulary& bytes = *ByteModel().vocabulary;
  const auto text = ReadMidi(MidiRequest(kOneNote), ModelOf(bytes), {});
  EXPECT_EQ(Refusal(text), kNotMusic);
  EXPECT_THAT(std::string(text.status().message()), HasSubstr("bytes"));
  const auto ids = ReadMidi(MidiRequest(kOneNote), IdModel(), {});
  EXPECT_EQ(Refusal(ids), kNotMusic);
  EXPECT_THAT(std::string(ids.status().message()), HasSubstr("no tokenizer"));
}

TEST(ReadMidi, StandsAlone) {
  v1::TokenizeRequest request = MidiRequest(kOneNote);
  request.set_text("Bar_None");
  EXPECT_EQ(Refusal(ReadRemi(request)), kNotMusic);
  request.set_text("");
  EXPECT_EQ(Refusal(ReadRemi(request)), "OK");
}

TEST(ReadMidi, HasAsManyBytesAsAPrompt) {
  RequestLimits limits;
  limits.prompt_bytes = static_cast<int64_t>(kOneNote.size());
  EXPECT_EQ(Refusal(ReadRemi(MidiRequest(kOneNote), limits)), "OK");
  --limits.prompt_bytes;
  EXPECT_EQ(Refusal(ReadRemi(MidiRequest(kOneNote), limits)),
            "INVALID_ARGUMENT OVER_LIMIT midi");
}

TEST(ReadMidi, MayHaveMoreTokensThanAPrompt) {
  RequestLimits limits = {.prompt_tokens = 1};
  EXPECT_EQ(ReadRemi(MidiRequest(kOneNote), limits)->ids, kOneNoteIds);
}

TEST(ReadMidi, ChecksTheOtherFieldAsForAText) {
  v1::TokenizeRequest request = MidiRequest(kOneNote);
  request.set_unknown(static_cast<v1::UnknownText>(7));
  EXPECT_EQ(Refusal(ReadRemi(request)),
            "INVALID_ARGUMENT FIELD_INVALID unknown");
}

}  // namespace
}  // namespace txl
