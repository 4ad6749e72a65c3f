#pragma once

// The opcodes of Python's pickle protocols 0 to 5.

#include <cstdint>

namespace txl {

enum PickleOpcode : uint8_t {
  kOpMark = '(',
  kOpStop = '.',
  kOpPop = '0',
  kOpPopMark = '1',
  kOpDup = '2',
  kOpFloat = 'F',
  kOpInt = 'I',
  kOpBinInt = 'J',
  kOpBinInt1 = 'K',
  kOpLong = 'L',
  kOpBinInt2 = 'M',
  kOpNone = 'N',
  kOpPersId = 'P',
  kOpBinPersId = 'Q',
  kOpReduce = 'R',
  kOpString = 'S',
  kOpBinString = 'T',
  kOpShortBinString = 'U',
  kOpUnicode = 'V',
  kOpBinUnicode = 'X',
  kOpAppend = 'a',
  kOpBuild = 'b',
  kOpGlobal = 'c',
  kOpDict = 'd',
  kOpAppends = 'e',
  kOpGet = 'g',
  kOpBinGet = 'h',
  kOpInst = 'i',
  kOpLongBinGet = 'j',
  kOpList = 'l',
  kOpObj = 'o',
  kOpPut = 'p',
  kOpBinPut = 'q',
  kOpLongBinPut = 'r',
  kOpSetItem = 's',
  kOpTuple = 't',
  kOpSetItems = 'u',
  kOpEmptyDict = '}',
  kOpEmptyList = ']',
  kOpEmptyTuple = ')',
  kOpBinFloat = 'G',
  kOpBinBytes = 'B',
  kOpShortBinBytes = 'C',
  // Protocol 2.
  kOpProto = 0x80,
  kOpNewObj = 0x81,
  kOpTuple1 = 0x85,
  kOpTuple2 = 0x86,
  kOpTuple3 = 0x87,
  kOpNewTrue = 0x88,
  kOpNewFalse = 0x89,
  kOpLong1 = 0x8a,
  kOpLong4 = 0x8b,
  // Protocol 4.
  kOpShortBinUnicode = 0x8c,
  kOpBinUnicode8 = 0x8d,
  kOpBinBytes8 = 0x8e,
  kOpEmptySet = 0x8f,
  kOpAddItems = 0x90,
  kOpFrozenSet = 0x91,
  kOpNewObjEx = 0x92,
  kOpStackGlobal = 0x93,
  kOpMemoize = 0x94,
  kOpFrame = 0x95,
  // Protocol 5.
  kOpByteArray8 = 0x96,
  kOpReadOnlyBuffer = 0x98,
};

}  // namespace txl
