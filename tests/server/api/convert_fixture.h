#pragma once

// What the tests of the conversions share: facts of two models and requests as
// protobuf's text format.

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

#include "model/text/byte_vocabulary.h"
#include "server/api/model_facts.h"
#include "tests/server/base/refusal.h"

namespace txl {

template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message))
      << text;
  return message;
}

// 256 ids, one a byte; a model with start and end tokens.
inline ModelFacts ByteModel() {
  static const ByteVocabulary vocabulary;
  ModelFacts facts;
  facts.name = "bytes";
  facts.fingerprint = "0123abcd";
  facts.config.vocab_size = ByteVocabulary::kSize;
  facts.config.n_layer = 3;
  facts.vocabulary = &vocabulary;
  return facts;
}

// The same ids without a tokenizer.
inline ModelFacts IdModel() {
  ModelFacts facts = ByteModel();
  facts.vocabulary = nullptr;
  return facts;
}

}  // namespace txl
