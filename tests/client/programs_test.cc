// ./strata generate, compare and admin as a shell runs them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/wait.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/client/fake_inference.h"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kPrograms[] = {"generate", "compare", "admin"};

struct Outcome {
  int status = -1;
  std::string text;  // of both outputs
};

Outcome Shell(const std::string& command) {
  Outcome outcome;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  char block[4096];
  while (const size_t size = fread(block, 1, sizeof(block), pipe)) {
    outcome.text.append(block, size);
  }
  outcome.status = WEXITSTATUS(pclose(pipe));
  return outcome;
}

std::string Program(const std::string& name, const FakeInference& server) {
  return absl::StrCat("client/strata_", name,
                      " --address=", server.Options().address, " ");
}

TEST(ProgramsTest, HelpIsNoFailure) {
  for (const std::string name : kPrograms) {
    const Outcome help = Shell(absl::StrCat("client/strata_", name, " --help"));
    EXPECT_EQ(help.status, 0);
    EXPECT_THAT(help.text, AllOf(HasSubstr("./strata " + name),
                                 HasSubstr("\n  --address=127.0.0.1:8001\n")));
  }
}

TEST(ProgramsTest, WrongCommandLinesEndWith2AndOneLine) {
  FakeInference server;
  for (const std::string name : kPrograms) {
    for (const char* words :
         {"", "a b --no_such_flag", "policy --api_key_file=/none",
          "policy --address"}) {
      const Outcome wrong = Shell(Program(name, server) + words);
      EXPECT_EQ(wrong.status, 2) << name << " " << words;
      EXPECT_THAT(wrong.text, StartsWith("strata " + name + ": "));
      EXPECT_EQ(std::ranges::count(wrong.text, '\n'), 1) << wrong.text;
    }
  }
  for (const char* words : {"a --chat --raw", "a --top_k=-1", "a --stop='\\q'",
                            "a --switch=5", "a --max_tokens=many"}) {
    EXPECT_EQ(Shell(Program("generate", server) + words).status, 2) << words;
  }
  EXPECT_TRUE(server.requests().empty());
}

TEST(ProgramsTest, WhatTheServerRefusesEndsWith1) {
  FakeInference server;
  server.refuse_every = 1;
  for (const char* name : {"generate", "compare"}) {
    const Outcome refused = Shell(Program(name, server) + "hi");
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.text, EndsWith("RESOURCE_EXHAUSTED: queue full\n"));
  }
}

TEST(ProgramsTest, FlagsBecomeTheRequest) {
  FakeInference server;
  const Outcome done =
      Shell(Program("generate", server) +
            "hi --raw --max_tokens=2 --priority=-3 --num_sequences=4 "
            "--min_tokens=1 --ignore_eos --presence_penalty=0.5 "
            "--frequency_penalty=-0.5 --switch='1:every=2' --stop='a\\n'");
  EXPECT_EQ(done.status, 0) << done.text;
  EXPECT_THAT(done.text, StartsWith("t0 t1 \n"));
  const v1::GenerateRequest request = server.requests().at(0);
  EXPECT_EQ(request.text(), "hi");
  EXPECT_EQ(request.priority(), -3);
  EXPECT_EQ(request.num_sequences(), 4u);
  EXPECT_EQ(request.stopping().min_tokens(), 1u);
  EXPECT_TRUE(request.stopping().ignore_eos());
  EXPECT_EQ(request.stopping().stop(0), "a\n");
  EXPECT_EQ(request.sampling().presence_penalty(), 0.5f);
  EXPECT_EQ(request.sampling().frequency_penalty(), -0.5f);
  EXPECT_EQ(request.strategy().switches(0).spec(), "every=2");
}

TEST(ProgramsTest, CtrlCEndsTheCallInOrder) {
  FakeInference server;
  server.pause_ms = 5;
  const std::string interrupted = "timeout --preserve-status -s INT 3 ";
  const Outcome generate = Shell(interrupted + Program("generate", server) +
                                 "hi --max_tokens=100000");
  EXPECT_EQ(generate.status, 130);
  EXPECT_THAT(generate.text,
              AllOf(StartsWith("t0 t1 "), HasSubstr("\ncancelled after ")));
  const Outcome compare = Shell(interrupted + Program("compare", server) +
                                "hi --max_tokens=100000");
  EXPECT_EQ(compare.status, 130);
  EXPECT_THAT(compare.text, HasSubstr("strata compare: under 'full': CANCEL"));
}

}  // namespace
}  // namespace strata
