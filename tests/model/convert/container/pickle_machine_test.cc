#include "model/convert/container/pickle_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "model/convert/container/pickle_value.h"
#include "tests/model/convert/container/allocation_watch.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

// A pickle and its value, which must outlive what is looked at.
struct Loaded {
  explicit Loaded(std::string pickle)
      : file(BytesInMemory(std::move(pickle), "p")), input(*file) {
    result = ReadPickle(input, arena);
  }
  const PickleValue& value() {
    EXPECT_TRUE(result.ok()) << result.status();
    static const PickleValue none;
    return result.ok() ? **result : none;
  }
  std::string error() { return std::string(result.status().message()); }

  std::shared_ptr<const ByteSource> file;
  PickleInput input;
  PickleArena arena;
  absl::StatusOr<const PickleValue*> result = nullptr;
};

int64_t IntOf(const std::string& pickle) {
  Loaded loaded(pickle);
  EXPECT_EQ(loaded.value().kind, PickleKind::kInt);
  return loaded.value().integer;
}

std::string TextOf(const std::string& pickle) {
  Loaded loaded(pickle);
  return std::string(loaded.value().text);
}

std::string MachineError(const std::string& pickle) {
  return Loaded(pickle).error();
}

// A string with zero bytes.
template <size_t n>
std::string Bytes(const char (&text)[n]) {
  return std::string(text, n - 1);
}

TEST(PickleMachine, IntegersOfEveryWidth) {
  EXPECT_EQ(IntOf("K\xff."), 255);
  EXPECT_EQ(IntOf("M\x01\x02."), 0x0201);
  EXPECT_EQ(IntOf("J\xfe\xff\xff\xff."), -2);
  EXPECT_EQ(IntOf(Bytes("\x8a\x00.")), 0);
  EXPECT_EQ(IntOf("\x8a\x01\xff."), -1);
  EXPECT_EQ(IntOf(Bytes("\x8a\x02\xff\x00.")), 255);
  EXPECT_EQ(IntOf(Bytes("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80.")),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(IntOf(Bytes("\x8b\x01\x00\x00\x00\x07.")), 7);
  EXPECT_EQ(IntOf("I-12\n."), -12);
  EXPECT_EQ(IntOf("L77L\n."), 77);
}

TEST(PickleMachine, BooleansOfOldAndNewProtocols) {
  for (const char* pickle : {"I01\n.", "\x88."}) {
    Loaded loaded(pickle);
    EXPECT_EQ(loaded.value().kind, PickleKind::kBool);
    EXPECT_EQ(loaded.value().integer, 1);
  }
  EXPECT_EQ(Loaded("I00\n.").value().integer, 0);
  EXPECT_EQ(Loaded("\x89.").value().kind, PickleKind::kBool);
}

TEST(PickleMachine, IntegersBeyond64BitsKeepTheirDigits) {
  Loaded binary(
      "\x8a\x09"
      "123456789.");
  EXPECT_EQ(binary.value().kind, PickleKind::kBigInt);
  EXPECT_EQ(binary.value().text, "123456789");
  EXPECT_EQ(TextOf("L123456789012345678901234567890L\n."),
            "123456789012345678901234567890");
}

TEST(PickleMachine, FloatsInTextAndBinary) {
  EXPECT_EQ(Loaded("F-1.5\n.").value().real, -1.5);
  EXPECT_EQ(Loaded(Bytes("G\x3f\xf8\0\0\0\0\0\0.")).value().real, 1.5);
}

TEST(PickleMachine, StringsOfEveryProtocol) {
  EXPECT_EQ(TextOf("S'a\\n\\x41'\np0\n."), "a\nA");
  EXPECT_EQ(TextOf("Vcaf\xe9\\u20ac\n."), "caf\xc3\xa9\xe2\x82\xac");
  EXPECT_EQ(TextOf("U\x02hi."), "hi");
  EXPECT_EQ(TextOf(Bytes("T\x02\0\0\0hi.")), "hi");
  EXPECT_EQ(TextOf(Bytes("X\x02\0\0\0hi.")), "hi");
  EXPECT_EQ(TextOf("\x8c\x02hi."), "hi");
  EXPECT_EQ(TextOf(Bytes("\x8d\x02\0\0\0\0\0\0\0hi.")), "hi");
  EXPECT_EQ(Loaded("C\x02hi.").value().kind, PickleKind::kBytes);
  EXPECT_EQ(Loaded(Bytes("B\x02\0\0\0hi.")).value().kind, PickleKind::kBytes);
  EXPECT_EQ(TextOf(Bytes("\x96\x02\0\0\0\0\0\0\0hi.")), "hi");
}

TEST(PickleMachine, TuplesOfEveryLength) {
  EXPECT_EQ(Loaded(").").value().items().size(), 0u);
  EXPECT_EQ(Loaded("N\x85.").value().items().size(), 1u);
  EXPECT_EQ(Loaded("NN\x86.").value().items().size(), 2u);
  EXPECT_EQ(Loaded("NNN\x87.").value().items().size(), 3u);
  Loaded four("(K\1K\2K\3K\4t.");
  ASSERT_EQ(four.value().items().size(), 4u);
  EXPECT_EQ(four.value().items()[3]->integer, 4);
}

TEST(PickleMachine, ListsSetsAndDictionariesFill) {
  EXPECT_EQ(Loaded("]K\1a(K\2K\3e.").value().items().size(), 3u);
  EXPECT_EQ(Loaded("(K\1K\2l.").value().items().size(), 2u);
  EXPECT_EQ(Loaded("\x8f(K\1K\2\x90.").value().items().size(), 2u);
  EXPECT_EQ(Loaded("(K\1\x91.").value().kind, PickleKind::kSet);
  EXPECT_EQ(Loaded("}K\1Ns(K\2NK\3Nu.").value().pairs().size(), 6u);
  Loaded old("(K\1K\2d.");
  EXPECT_EQ(old.value().kind, PickleKind::kDict);
  EXPECT_EQ(old.value().pairs()[1]->integer, 2);
}

TEST(PickleMachine, MemoGivesTheSameValueAgain) {
  for (const std::string& pickle :
       {std::string("(]q\0h\0t.", 8), std::string("(]p0\ng0\nt."),
        Bytes("(]r\0\0\0\0j\0\0\0\0t."), std::string("(]\x94h\0t.", 7)}) {
    Loaded loaded(pickle);
    ASSERT_EQ(loaded.value().items().size(), 2u);
    EXPECT_EQ(loaded.value().items()[0], loaded.value().items()[1]);
  }
}

TEST(PickleMachine, ObjectsAreRecordsOfWhatWouldBeCalled) {
  // REDUCE, NEWOBJ, INST, OBJ and NEWOBJ_EX with one argument, then a state.
  for (const std::string made :
       {"cm\nC\nK\5\x85R", "cm\nC\nK\5\x85\x81", "(K\5im\nC\n", "(cm\nC\nK\5o",
        "cm\nC\nK\5\x85}\x92"}) {
    Loaded loaded(made + "}b.");
    const PickleValue& object = loaded.value();
    EXPECT_EQ(object.kind, PickleKind::kObject);
    ASSERT_NE(object.callee(), nullptr);
    EXPECT_TRUE(object.callee()->IsGlobal("m.C"));
    ASSERT_EQ(object.args()->items().size(), 1u);
    EXPECT_EQ(object.args()->items()[0]->integer, 5);
    EXPECT_EQ(object.state()->kind, PickleKind::kDict);
  }
  EXPECT_TRUE(Loaded("\x8c\1m\x8c\1C\x93.").value().IsGlobal("m.C"));
}

TEST(PickleMachine, PersistentIdsAreListedInOrder) {
  Loaded loaded("(Pone\nK\2Qt.");
  EXPECT_EQ(loaded.value().items().size(), 2u);
  ASSERT_EQ(loaded.arena.persistent().size(), 2u);
  EXPECT_EQ(loaded.arena.persistent()[0]->items()[0]->text, "one");
  EXPECT_EQ(loaded.arena.persistent()[1]->items()[0]->integer, 2);
}

TEST(PickleMachine, StackOpcodesCountMarks) {
  EXPECT_EQ(IntOf("K\1(K\2K\3"
                  "1."),
            1);
  EXPECT_EQ(IntOf("K\1K\2"
                  "0."),
            1);
  EXPECT_EQ(IntOf("K\1(0."), 1);
  EXPECT_EQ(Loaded("(K\1"
                   "2t.")
                .value()
                .items()
                .size(),
            2u);
}

TEST(PickleMachine, PicklesFollowEachOther) {
  const auto file = BytesInMemory("K\1.K\2.", "two");
  PickleInput input(*file);
  PickleArena arena;
  EXPECT_EQ((*ReadPickle(input, arena))->integer, 1);
  EXPECT_EQ((*ReadPickle(input, arena))->integer, 2);
  EXPECT_EQ(input.remaining(), 0u);
}

TEST(PickleMachine, MalformedPicklesAreErrorsWithTheirPlace) {
  EXPECT_EQ(MachineError("K\1R."),
            "p: pickle at byte 3: it is malformed: an opcode finds too few "
            "values");
  for (const std::string pickle :
       {"R.",    "a.",         "s.",          "u.",        "e.",
        "t.",    "b.",         "0.",          "1.",        "2.",
        "\x85.", "N\x86.",     "Q.",          "o.",        "(o.",
        "d.",    "(Nd.",       "\x93.",       "\x94.",     "q\1.",
        "h\1.",  "g1\n.",      "gx\n.",       "NN.",       "(N.",
        ".",     "NNa.",       "NNNs.",       "](NNu.",    "}(NNe.",
        "}(Nu.", "cm\nC\nNR.", "K\1K\2\x93.", "Ix\n.",     "Fx\n.",
        "Lx\n.", "Sx\n.",      "S'\\x4'\n.",  "V\\u12\n.", "\x80\x09N.",
        "\xff.", "\x97."}) {
    EXPECT_THAT(MachineError(pickle), HasSubstr("p: pickle at byte"))
        << testing::PrintToString(pickle);
  }
}

TEST(PickleMachine, EndBeforeStopIsTruncation) {
  for (const std::string pickle :
       {"", "N", "K", "M\1", "U\5ab", "S'abc", "cmod\n", "\x8a\5\1"}) {
    EXPECT_THAT(MachineError(pickle), HasSubstr("truncated"))
        << testing::PrintToString(pickle);
  }
}

TEST(PickleMachine, LyingLengthsAllocateNothing) {
  for (const std::string& pickle :
       {Bytes("X\xff\xff\xff\x7f"
              "abc."),
        Bytes("B\xff\xff\xff\xff"
              "abc."),
        Bytes("T\xff\xff\xff\xff"
              "abc."),
        Bytes("\x8b\xff\xff\xff\x7f."),
        Bytes("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
              "abc."),
        Bytes("\x96\xff\xff\xff\xff\xff\xff\xff\x7f"
              "abc."),
        Bytes("Nr\xff\xff\xff\xff."), std::string("Np999999999999999\n.")}) {
    const auto file = BytesInMemory(pickle, "liar");
    const AllocationWatch watch;
    PickleInput input(*file);
    PickleArena arena;
    EXPECT_FALSE(ReadPickle(input, arena).ok());
    EXPECT_LE(watch.largest_bytes(), 1u << 16);
  }
}

TEST(PickleMachine, MemoIndexMayNotExceedWhatWasRead) {
  EXPECT_THAT(MachineError("Np4000000000\n."),
              HasSubstr("memo index 4000000000"));
  EXPECT_THAT(MachineError("Nq\x80."), HasSubstr("memo index 128"));
}

TEST(PickleMachine, MemoryIsBoundedWhateverTheFileSays) {
  // Lists of one mark each: the cheapest byte that needs memory.
  std::string pickle(size_t{12} << 20, ']');
  EXPECT_THAT(MachineError(pickle), HasSubstr("more memory"));
}

TEST(PickleMachine, ForbiddenGlobalsAreNamedWhereverTheyStand) {
  EXPECT_THAT(MachineError("cos\nsystem\n."), HasSubstr("global os.system"));
  EXPECT_THAT(MachineError("(S'id'\nios\nsystem\n."), HasSubstr("os.system"));
  EXPECT_THAT(MachineError("\x8c\x05posix\x8c\x06system\x93."),
              HasSubstr("posix.system"));
  EXPECT_THAT(MachineError("c__builtin__\neval\n."),
              HasSubstr("__builtin__.eval"));
}

}  // namespace
}  // namespace txl
