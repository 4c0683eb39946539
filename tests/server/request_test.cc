#include "server/request.h"

#include <gtest/gtest.h>

#include "tests/server/request_fixture.h"

namespace strata {
namespace {

TEST_F(RequestTest, UnsetFieldsHaveTheirDefaults) {
  const absl::StatusOr<Request> request = Parse(Minimal());
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->kind, Request::Kind::kGenerate);
  EXPECT_EQ(request->prompt, (std::vector<int32_t>{3, kVocab - 1}));
  EXPECT_EQ(request->label, "");
  EXPECT_EQ(request->strategy.canonical(), "full");
  EXPECT_EQ(request->sampling.temperature, 1.0f);
  EXPECT_EQ(request->sampling.top_p, 1.0f);
  EXPECT_EQ(request->sampling.top_k, 0);
  EXPECT_EQ(request->sampling.min_p, 0.0f);
  EXPECT_FALSE(request->sampling.has_penalties());
  EXPECT_EQ(request->num_sequences, 1);
  EXPECT_FALSE(request->num_top_logprobs.has_value());
  EXPECT_EQ(request->priority, 0);
  EXPECT_EQ(request->cache_salt, "");
  EXPECT_FALSE(request->bypass_prefix_cache);
  EXPECT_FALSE(request->tokens_only);
  EXPECT_EQ(request->deadline, absl::InfiniteFuture());
  EXPECT_NE(request->sampling.seed, Parse(Minimal())->sampling.seed);
}

TEST_F(RequestTest, EveryFieldArrives) {
  v1::GenerateRequest message = Minimal();
  message.set_model("tiny");
  message.set_request_id("mine");
  message.mutable_strategy()->set_spec("every=2");
  message.mutable_strategy()->set_floor("leaders=0,4");
  message.mutable_strategy()->add_switches()->set_spec("leaders=0,2");
  message.mutable_strategy()->mutable_switches(0)->set_after_generated(3);
  v1::Sampling* sampling = message.mutable_sampling();
  sampling->set_temperature(0.5f);
  sampling->set_top_p(0.9f);
  sampling->set_top_k(7);
  sampling->set_min_p(0.1f);
  sampling->set_repetition_penalty(1.5f);
  sampling->set_presence_penalty(-2.0f);
  sampling->set_frequency_penalty(2.0f);
  sampling->set_seed(0xFFFFFFFFFFFFFFFF);
  (*sampling->mutable_logit_bias())[9] = -3.0f;
  (*sampling->mutable_logit_bias())[4] = 100.0f;
  for (int id : {8, 2, 8}) sampling->add_allowed_token_ids(id);
  v1::Stopping* stopping = message.mutable_stopping();
  stopping->set_max_tokens(5);
  stopping->set_min_tokens(5);
  stopping->add_stop("b");
  stopping->add_stop("a");
  for (int id : {6, 1, 6}) stopping->add_stop_token_ids(id);
  stopping->set_ignore_eos(true);
  stopping->set_include_stop(true);
  message.set_num_sequences(128);
  message.set_top_logprobs(20);
  message.set_priority(-9);
  message.set_cache_salt("salt");
  message.set_bypass_prefix_cache(true);
  message.set_tokens_only(true);
  const absl::Time deadline = absl::FromUnixSeconds(2000000000);

  const auto request = ToRequest(served_.model, message, deadline);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->label, "mine");
  EXPECT_EQ(request->strategy.canonical(), "every=2");
  EXPECT_EQ(request->floor.value().canonical(), "every=4");
  ASSERT_EQ(request->switches.size(), 1u);
  EXPECT_EQ(request->switches[0].after_generated, 3);
  EXPECT_EQ(request->switches[0].strategy.canonical(), "leaders=0,2");
  const Sampling& s = request->sampling;
  EXPECT_EQ(s.temperature, 0.5f);
  EXPECT_EQ(s.top_p, 0.9f);
  EXPECT_EQ(s.top_k, 7);
  EXPECT_EQ(s.min_p, 0.1f);
  EXPECT_EQ(s.repetition_penalty, 1.5f);
  EXPECT_EQ(s.presence_penalty, -2.0f);
  EXPECT_EQ(s.frequency_penalty, 2.0f);
  EXPECT_EQ(s.seed, 0xFFFFFFFFFFFFFFFF);
  ASSERT_EQ(s.logit_bias.size(), 2u);
  EXPECT_EQ(s.logit_bias[0].token, 4);
  EXPECT_EQ(s.logit_bias[0].bias, 100.0f);
  EXPECT_EQ(s.logit_bias[1].token, 9);
  EXPECT_EQ(s.logit_bias[1].bias, -3.0f);
  EXPECT_EQ(s.allowed_tokens, (std::vector<int32_t>{2, 8}));
  const Stopping& t = request->stopping;
  EXPECT_EQ(t.min_tokens, 5);
  EXPECT_EQ(t.stop, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(t.stop_tokens, (std::vector<int32_t>{1, 6}));
  EXPECT_TRUE(t.ignore_eos);
  EXPECT_TRUE(t.include_stop);
  EXPECT_EQ(MaxTokensOf(message), 5u);
  EXPECT_EQ(request->num_sequences, 128);
  EXPECT_EQ(request->num_top_logprobs, 20);
  EXPECT_EQ(request->priority, -9);
  EXPECT_EQ(request->cache_salt, "salt");
  EXPECT_TRUE(request->bypass_prefix_cache);
  EXPECT_TRUE(request->tokens_only);
  EXPECT_EQ(request->deadline, deadline);
}

TEST_F(RequestTest, SamplingOutOfRangeIsRefusedByName) {
  using S = v1::Sampling;
  struct Field {
    const char* name;
    void (S::*set)(float);
    std::vector<float> good, bad;
  };
  const float above_1 = std::nextafter(1.0f, 2.0f);
  const float above_2 = std::nextafter(2.0f, 3.0f);
  const Field fields[] = {
      {"temperature", &S::set_temperature, {0, -0.0f, 1e-30f, 100}, {-1e-6f}},
      {"top_p", &S::set_top_p, {1e-6f, 1}, {0, -0.5f, above_1}},
      {"min_p", &S::set_min_p, {0, 1}, {-1e-6f, above_1}},
      {"repetition_penalty", &S::set_repetition_penalty, {1e-3f, 50}, {0, -1}},
      {"presence_penalty",
       &S::set_presence_penalty,
       {-2, 2},
       {-above_2, above_2}},
      {"frequency_penalty",
       &S::set_frequency_penalty,
       {-2, 2},
       {-above_2, above_2}},
  };
  for (const Field& field : fields) {
    for (float value : field.good) {
      const auto request = Parse([&](v1::GenerateRequest* m) {
        (m->mutable_sampling()->*field.set)(value);
      });
      EXPECT_TRUE(request.ok()) << field.name << value << request.status();
    }
    std::vector<float> bad = field.bad;
    for (float value : {kNan, kInf, -kInf}) bad.push_back(value);
    for (float value : bad) {
      ExpectInvalid(
          [&](v1::GenerateRequest* m) {
            (m->mutable_sampling()->*field.set)(value);
          },
          std::string(field.name) + " is ");
    }
  }
}

TEST_F(RequestTest, TinyTemperaturesAreGreedyAndAHugeTopKIsAll) {
  const auto request = Parse([](v1::GenerateRequest* m) {
    m->mutable_sampling()->set_temperature(1e-30f);
    m->mutable_sampling()->set_top_k(0xFFFFFFFF);
  });
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->sampling.temperature, 0.0f);
  EXPECT_EQ(request->sampling.top_k, 0);
}

TEST_F(RequestTest, TokenIdsAreWithinTheVocabulary) {
  for (uint32_t id : {uint32_t{kVocab}, 0x80000000u, 0xFFFFFFFFu}) {
    const std::string words = "token id " + std::to_string(id);
    ExpectInvalid(
        [&](v1::GenerateRequest* m) { m->mutable_tokens()->add_ids(id); },
        "prompt: " + words + " at 2");
    ExpectInvalid(
        [&](v1::GenerateRequest* m) {
          m->mutable_stopping()->add_stop_token_ids(id);
        },
        "stop_token_ids: " + words);
    ExpectInvalid(
        [&](v1::GenerateRequest* m) {
          m->mutable_sampling()->add_allowed_token_ids(id);
        },
        "allowed_token_ids: " + words);
    ExpectInvalid(
        [&](v1::GenerateRequest* m) {
          (*m->mutable_sampling()->mutable_logit_bias())[id] = 1;
        },
        "logit_bias: " + words);
  }
  for (float bias : {kNan, kInf, -kInf}) {
    ExpectInvalid(
        [&](v1::GenerateRequest* m) {
          (*m->mutable_sampling()->mutable_logit_bias())[5] = bias;
        },
        "logit_bias of token 5");
  }
}

TEST_F(RequestTest, StoppingIsChecked) {
  ExpectInvalid(
      [](v1::GenerateRequest* m) { m->mutable_stopping()->set_max_tokens(0); },
      "max_tokens is 0");
  ExpectInvalid(
      [](v1::GenerateRequest* m) {
        m->mutable_stopping()->set_max_tokens(4);
        m->mutable_stopping()->set_min_tokens(5);
      },
      "min_tokens is 5, must be at most max_tokens, 4");
  ExpectInvalid(
      [](v1::GenerateRequest* m) { m->mutable_stopping()->add_stop(""); },
      "stop has an empty string");
  ExpectInvalid(
      [](v1::GenerateRequest* m) {
        for (int i = 0; i < 17; ++i) m->mutable_stopping()->add_stop("x");
      },
      "stop has 17 strings, at most 16");
  ExpectInvalid(
      [](v1::GenerateRequest* m) {
        m->mutable_stopping()->add_stop(std::string(257, 'x'));
      },
      "257 bytes, at most 256");
  EXPECT_TRUE(Parse([](v1::GenerateRequest* m) {
                for (int i = 0; i < 16; ++i) {
                  m->mutable_stopping()->add_stop(std::string(256, 'x'));
                }
              }).ok());
  const auto most = Parse([](v1::GenerateRequest* m) {
    m->mutable_stopping()->set_min_tokens(0xFFFFFFFF);
  });
  ASSERT_TRUE(most.ok());
  EXPECT_EQ(most->stopping.min_tokens, INT32_MAX);
}

TEST_F(RequestTest, SomeTokenMustRemainBeforeMinTokens) {
  const auto only_ends = [](v1::GenerateRequest* m) {
    m->mutable_stopping()->set_min_tokens(2);
    m->mutable_stopping()->add_stop_token_ids(7);
    m->mutable_sampling()->add_allowed_token_ids(7);
    m->mutable_sampling()->add_allowed_token_ids(1);  // the model's end token
  };
  ExpectInvalid(only_ends, "all allowed_token_ids end the text");
  EXPECT_TRUE(Parse([&](v1::GenerateRequest* m) {
                only_ends(m);
                m->mutable_stopping()->set_ignore_eos(true);
              }).ok());
  EXPECT_TRUE(Parse([&](v1::GenerateRequest* m) {
                only_ends(m);
                m->mutable_stopping()->set_min_tokens(0);
              }).ok());
}

TEST_F(RequestTest, CountsAreBounded) {
  ExpectInvalid([](v1::GenerateRequest* m) { m->set_num_sequences(129); },
                "num_sequences is 129, must be at most 128");
  ExpectInvalid(
      [](v1::GenerateRequest* m) { m->set_num_sequences(0xFFFFFFFF); },
      "num_sequences");
  ExpectInvalid([](v1::GenerateRequest* m) { m->set_top_logprobs(21); },
                "top_logprobs is 21, must be at most 20");
  ExpectInvalid(
      [](v1::GenerateRequest* m) { m->set_top_logprobs(4294967295u); },
      "top_logprobs is 4294967295, must be at most 20");
  ExpectInvalid(
      [](v1::GenerateRequest* m) { m->set_request_id(std::string(257, 'r')); },
      "request_id");
}

TEST_F(RequestTest, StrategiesAreChecked) {
  ExpectInvalid(
      [](v1::GenerateRequest* m) { m->mutable_strategy()->set_spec("evry=2"); },
      "strategy.spec: ");
  ExpectInvalid(
      [](v1::GenerateRequest* m) { m->mutable_strategy()->set_floor("half"); },
      "strategy.floor: ");
  ExpectInvalid(
      [](v1::GenerateRequest* m) { m->mutable_strategy()->add_switches(); },
      "strategy.switches[0].spec: is empty");
  ASSERT_TRUE(served_.tiny.strategies->Register("half", "every=2").ok());
  const auto named = Parse(
      [](v1::GenerateRequest* m) { m->mutable_strategy()->set_spec("half"); });
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->strategy.canonical(), "every=2");
  EXPECT_NE(named->strategy_label, 0);
}

TEST_F(RequestTest, SaltsAreBoundedAndNotShown) {
  const std::string salt(256, 's');
  const auto request =
      Parse([&](v1::GenerateRequest* m) { m->set_cache_salt(salt); });
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->cache_salt, salt);
  ExpectInvalid([&](v1::GenerateRequest* m) { m->set_cache_salt(salt + "s"); },
                "cache_salt has 257 bytes, at most 256 are allowed");
}

TEST_F(RequestTest, OtherModelsAreNotFound) {
  ExpectRefused([](v1::GenerateRequest* m) { m->set_model("gpt"); },
                absl::StatusCode::kNotFound, "model \"gpt\" is not served");
}

TEST_F(RequestTest, WhatAClientSentIsQuotedCutAndEscaped) {
  const std::string long_text = std::string(1000, 'z') + "END";
  for (const Change& change : std::vector<Change>{
           [&](v1::GenerateRequest* m) { m->set_model("\n" + long_text); },
           [&](v1::GenerateRequest* m) {
             m->mutable_strategy()->set_spec("\n" + long_text);
           },
           [&](v1::GenerateRequest* m) {
             m->mutable_stopping()->add_stop("\n" + long_text);
           },
           [&](v1::GenerateRequest* m) {
             m->set_request_id("\n" + long_text);
           }}) {
    const auto request = Parse(change);
    ASSERT_FALSE(request.ok());
    const std::string shown(request.status().message());
    EXPECT_LE(shown.size(), 512u);
    EXPECT_EQ(shown.find('\n'), std::string::npos) << shown;
    EXPECT_EQ(shown.find("END"), std::string::npos) << shown;
    EXPECT_NE(shown.find("\\nzzz"), std::string::npos) << shown;
  }
}

TEST_F(RequestTest, ScoreIsCheckedTheSameWay) {
  const auto parse = [&](const std::function<void(v1::ScoreRequest*)>& change) {
    v1::ScoreRequest message;
    message.mutable_tokens()->add_ids(3);
    change(&message);
    return ToRequest(served_.model, message, absl::InfiniteFuture());
  };
  const auto plain = parse(
      [](v1::ScoreRequest* m) { m->mutable_strategy()->set_spec("prefix=3"); });
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->kind, Request::Kind::kScore);
  EXPECT_EQ(plain->num_top_logprobs, 0);
  EXPECT_EQ(plain->strategy.canonical(), "prefix=3");
  const auto tops = parse([](v1::ScoreRequest* m) {
    m->set_text("ab");
    m->set_top_logprobs(4);
  });
  ASSERT_TRUE(tops.ok()) << tops.status();
  EXPECT_EQ(tops->prompt, (std::vector<int32_t>{kByteBos, 'a', 'b'}));
  EXPECT_EQ(tops->num_top_logprobs, 4);

  const auto code = [&](const std::function<void(v1::ScoreRequest*)>& change) {
    return parse(change).status().code();
  };
  using Code = absl::StatusCode;
  EXPECT_EQ(code([](v1::ScoreRequest* m) { m->set_model("x"); }),
            Code::kNotFound);
  EXPECT_EQ(code([](v1::ScoreRequest* m) { m->clear_prompt(); }),
            Code::kInvalidArgument);
  EXPECT_EQ(code([](v1::ScoreRequest* m) { m->set_text(""); }),
            Code::kInvalidArgument);
  EXPECT_EQ(
      code([](v1::ScoreRequest* m) { m->mutable_tokens()->add_ids(kVocab); }),
      Code::kInvalidArgument);
  EXPECT_EQ(code([](v1::ScoreRequest* m) { m->set_top_logprobs(21); }),
            Code::kInvalidArgument);

  const auto floored = parse(
      [](v1::ScoreRequest* m) { m->mutable_strategy()->set_floor("every=2"); });
  ASSERT_TRUE(floored.ok()) << floored.status();
  EXPECT_EQ(floored->floor.value().canonical(), "every=2");
  const auto switched = parse([](v1::ScoreRequest* m) {
    m->mutable_strategy()->add_switches()->set_spec("every=2");
  });
  EXPECT_EQ(switched.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(switched.status().message(),
            "strategy.switches: Score has no generated tokens to switch "
            "after");
}

}  // namespace
}  // namespace strata
