#include "model/convert/vocabulary/vocabulary_kind.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/config/generation_defaults.h"
#include "model/config/token_kinds_file.h"
#include "tests/model/convert/vocabulary/vocabulary_directory.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using json = nlohmann::json;

DescribedVocabulary Describe(const NativeVocabulary& vocabulary,
                             const std::string& family = "kimiyoung") {
  const auto described = DescribeVocabulary(
      vocabulary, {family, static_cast<int64_t>(vocabulary.symbols.size())});
  EXPECT_TRUE(described.ok()) << described.status();
  return described.value_or(DescribedVocabulary());
}

DescribedVocabulary Describe(std::vector<std::string> symbols,
                             const std::string& family = "kimiyoung") {
  NativeVocabulary vocabulary;
  vocabulary.symbols = std::move(symbols);
  return Describe(vocabulary, family);
}

json Tokenizer(const DescribedVocabulary& described) {
  return json::parse(described.files.at("tokenizer.json"));
}

std::vector<int32_t> StartTokens(const DescribedVocabulary& described) {
  const auto file = described.files.find("generation.json");
  if (file == described.files.end()) return {};
  return ParseGenerationDefaults(file->second, "generation.json", 1000)
      ->start_tokens;
}

TEST(DescribeVocabulary, WordsWithAnEosAreSymbolsThatStartWithIt) {
  const auto described = Describe({"the", "<eos>", "<unk>", "Cat"});
  EXPECT_EQ(Tokenizer(described), json({{"kind", "symbols"},
                                        {"file", "vocab.txt"},
                                        {"lower_case", false},
                                        {"line_token", "<eos>"},
                                        {"unknown", "<unk>"}}));
  EXPECT_EQ(described.files.at("vocab.txt"), "the\n<eos>\n<unk>\nCat\n");
  EXPECT_THAT(StartTokens(described), ElementsAre(1));
}

TEST(DescribeVocabulary, WordsWithoutUpperCaseAreOfLoweredText) {
  const auto described = Describe({"<EOS>", "the", "cat"}, "ptb-article");
  EXPECT_EQ(Tokenizer(described)["lower_case"], true);
  EXPECT_THAT(*Loaded(described.files, 3)->Encode("The CAT"),
              ElementsAre(1, 2));
}

TEST(DescribeVocabulary, TheAttributesOfAVocabGoBeforeGuesses) {
  NativeVocabulary vocabulary;
  vocabulary.symbols = {"<eos>", "oov", "a b", "x"};
  vocabulary.lower_case = false;
  vocabulary.delimiter = " ";
  vocabulary.unknown_id = 1;
  const json tokenizer = Tokenizer(Describe(vocabulary));
  EXPECT_EQ(tokenizer["lower_case"], false);
  EXPECT_EQ(tokenizer["delimiter"], " ");
  EXPECT_EQ(tokenizer["unknown"], "oov");
}

TEST(DescribeVocabulary, SentenceMarksStandOnBothSides) {
  const auto described = Describe({"<UNK>", "<S>", "The", "end"});
  EXPECT_EQ(Tokenizer(described)["line_token"], "<S>");
  EXPECT_EQ(Tokenizer(described)["double_line_tokens"], true);
  EXPECT_THAT(StartTokens(described), ElementsAre(1));
  EXPECT_THAT(*Loaded(described.files, 4)->EncodeDocument("The end\n"),
              ElementsAre(1, 2, 3, 1));
}

TEST(DescribeVocabulary, DecimalNumbersAreBytes) {
  const auto described = Describe({"32", "101", "7"});
  EXPECT_EQ(Tokenizer(described)["kind"], "decimal_bytes");
  EXPECT_THAT(*Loaded(described.files, 3)->Encode("e e\n"),
              ElementsAre(1, 0, 1));
  EXPECT_THAT(StartTokens(described), ElementsAre());
}

TEST(DescribeVocabulary, DigitsAndLargeNumbersAreNoBytes) {
  EXPECT_EQ(Tokenizer(Describe({"1", "2"}))["kind"], "characters");
  EXPECT_EQ(Tokenizer(Describe({"32", "256"}))["kind"], "symbols");
  EXPECT_EQ(Tokenizer(Describe({"32", "032"}))["kind"], "symbols");
}

TEST(DescribeVocabulary, SingleCharactersStartAfterALineBreak) {
  const auto described = Describe({"a", "\n", " ", "\u00E9"}, "labml");
  EXPECT_EQ(Tokenizer(described)["kind"], "characters");
  EXPECT_EQ(Tokenizer(described)["file"], "vocab.json");
  EXPECT_THAT(StartTokens(described), ElementsAre(1));
  EXPECT_THAT(*Loaded(described.files, 4)->Encode("\u00E9 a\n"),
              ElementsAre(3, 2, 0, 1));
}

TEST(DescribeVocabulary, LettersAndAnUnderscoreAreText8) {
  const auto described = Describe({"_", "e", "t"});
  EXPECT_EQ(Tokenizer(described)["space"], "_");
  const auto vocabulary = Loaded(described.files, 3);
  EXPECT_THAT(*vocabulary->Encode("Te t"), ElementsAre(2, 1, 0, 2));
  EXPECT_EQ(*vocabulary->Decode({2, 1, 0, 2}), "te t");
}

TEST(DescribeVocabulary, HuggingFacesReleasedKindIsWikitext) {
  const auto described =
      Describe({"<eos>", "<unk>", "@-@", "well", "Known"}, "huggingface");
  EXPECT_EQ(Tokenizer(described)["kind"], "wikitext");
  EXPECT_THAT(*Loaded(described.files, 5)->Encode("well-Known\n"),
              ElementsAre(3, 2, 4, 0));
  EXPECT_THAT(StartTokens(described), ElementsAre(0));
}

TEST(DescribeVocabulary, OtherVocabulariesOfHuggingFaceAreSymbols) {
  EXPECT_EQ(
      Tokenizer(Describe({"<eos>", "<unk>", "word"}, "huggingface"))["kind"],
      "symbols");
  EXPECT_EQ(Tokenizer(Describe({"<eos>", "@-@", "word"}, "nvidia"))["kind"],
            "symbols");
}

TEST(DescribeVocabulary, MusicStartsWithABar) {
  NativeVocabulary vocabulary;
  vocabulary.symbols = {"Note On_5", "Bar_Start", "Bar_None"};
  vocabulary.events = true;
  const auto described = Describe(vocabulary, "");
  EXPECT_EQ(Tokenizer(described)["kind"], "events");
  EXPECT_THAT(StartTokens(described), ElementsAre(2));
  EXPECT_EQ(*Loaded(described.files, 3)->Decode({2, 0}),
            "Bar_None Note%20On_5");
  EXPECT_THAT(StartTokens(Describe({"x_1", "Bar_A", "Bar_B"}, "remi")),
              ElementsAre(1));
  EXPECT_THAT(StartTokens(Describe({"x_1", "y_2"}, "remi")), ElementsAre());
}

TEST(DescribeVocabulary, MusicHasTheKindsOfItsEvents) {
  NativeVocabulary vocabulary;
  vocabulary.symbols = {"Bar_None",   "Position_1/16",   "Note Velocity_9",
                        "Note On_60", "Note Duration_3", "Position_2/16"};
  vocabulary.events = true;
  const auto described = Describe(vocabulary, "");
  const auto kinds =
      ParseTokenKinds(described.files.at("kinds.json"), "kinds.json", 6);
  ASSERT_TRUE(kinds.ok()) << kinds.status();
  EXPECT_EQ(kinds->KindOf(1), kinds->KindOf(5));
  EXPECT_TRUE(HoldsKind(kinds->After(5).next, kinds->KindOf(2)));
  EXPECT_FALSE(HoldsKind(kinds->After(5).next, kinds->KindOf(3)));
  EXPECT_EQ(Describe({"x_1", "y_2"}, "remi").files.count("kinds.json"), 0u);
}

TEST(DescribeVocabulary, RepairsAreNoted) {
  const auto described = Describe({"<eos>", "caf\u00C3\u00A9", "x\xFF"});
  EXPECT_THAT(described.notes, HasSubstr("1 symbols that had been read as"));
  EXPECT_THAT(described.notes, HasSubstr("1 symbols that are not UTF-8"));
  EXPECT_THAT(described.files.at("vocab.txt"), HasSubstr("caf\u00E9"));
}

TEST(DescribeVocabulary, AnotherNumberOfSymbolsIsRefused) {
  NativeVocabulary vocabulary;
  vocabulary.symbols = {"a", "b"};
  const auto described = DescribeVocabulary(vocabulary, {"nvidia", 3});
  EXPECT_THAT(std::string(described.status().message()),
              HasSubstr("has 2 symbols, the model's vocab_size is 3"));
}

TEST(DescribeVocabulary, AnUnknownDelimiterIsRefused) {
  NativeVocabulary vocabulary;
  vocabulary.symbols = {"a"};
  vocabulary.delimiter = ",";
  EXPECT_FALSE(DescribeVocabulary(vocabulary, {"nvidia", 1}).ok());
}

TEST(DescribeDigits, TheServerReadsThem) {
  EXPECT_EQ(*Loaded(DescribeDigits().files, 10)->Decode({3, 1, 4}), "3 1 4");
}

}  // namespace
}  // namespace txl
