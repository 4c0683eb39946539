// What cannot be served ends the process with one line that says why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/server/e2e/server_process.h"

namespace strata {
namespace {

using testing::HasSubstr;

constexpr char kTiny[] = "--model=tests/golden/llama-tied";

// Starts a server that must fail; returns its one line.
std::string FailureOf(std::vector<std::string> flags) {
  ServerProcess server(flags);
  EXPECT_EQ(server.Wait(), 1) << server.Log();
  const std::string log = server.Log();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  EXPECT_EQ(server.out(), "");
  return log;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A copy of the tiny model with another model.safetensors.
std::string WithWeights(const std::string& name, const std::string& bytes) {
  const std::string directory = absl::StrCat(testing::TempDir(), "/", name);
  mkdir(directory.c_str(), 0700);
  std::ofstream(directory + "/config.json")
      << ReadFile("tests/golden/llama-tied/config.json");
  std::ofstream(directory + "/model.safetensors", std::ios::binary) << bytes;
  return directory;
}

TEST(StartFailureTest, BadModelFilesAreNamed) {
  const std::string good =
      ReadFile("tests/golden/llama-tied/model.safetensors");
  ASSERT_GT(good.size(), 1000u);
  std::string huge_header = good;
  huge_header.replace(0, 8, std::string(8, '\xff'));
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"cut_weights", good.substr(0, good.size() - 1)},
      {"cut_header", good.substr(0, 100)},
      {"empty", ""},
      {"seven_bytes", good.substr(0, 7)},
      {"huge_header", huge_header},
      {"zeros", std::string(4096, '\0')},
  };
  for (const auto& [name, bytes] : bad) {
    const std::string directory = WithWeights(name, bytes);
    const std::string line = FailureOf({"--model=" + directory});
    EXPECT_TRUE(absl::StartsWith(
        line, absl::StrCat("strata_server: ", directory, "/model.safetensors")))
        << line;
  }
}

TEST(StartFailureTest, MissingAndForeignModels) {
  EXPECT_THAT(FailureOf({"--model=/nonexistent"}),
              HasSubstr("strata_server: /nonexistent: "));
  const std::string gguf = absl::StrCat(testing::TempDir(), "/foreign.gguf");
  std::ofstream(gguf) << "this is no model";
  EXPECT_THAT(FailureOf({"--model=" + gguf}),
              HasSubstr(absl::StrCat("strata_server: ", gguf, ": ")));
}

TEST(StartFailureTest, FlagsAreNamed) {
  struct Case {
    std::string flag;
    std::string says;
  };
  for (const Case& c : std::vector<Case>{
           {"--backend=cuda", "built without CUDA"},
           {"--backend=tpu", "allowed are auto, cpu"},
           {"--precision=f16", "allowed are auto, f32"},
           {"--weight_type=int8", "allowed are auto, fp8"},
           {"--weight_type=fp8", "--weight_type=fp8 needs a GPU: "},
           {"--kv_type=int8", "allowed are auto, fp8"},
           {"--kv_type=fp8", "--kv_type=fp8 needs a GPU: "},
           {"--page_tokens=24", "allowed are 4, 8, 16, 32, 64, 128"},
           {"--grpc_port=70000", "allowed are 0 to 65535"},
           {"--threads=-1", "--threads"},
           {"--kv_memory=1GB", "--kv_memory"},
           {"--kv_memory=100", "one page of this model needs 2KiB"},
           {"--kv_memory=1000000GiB",
            "--kv_memory=1000000GiB: at most 2147483647 pages of 2KiB are "},
           {"--kv_memory=4000GiB",
            "out of memory for the KV cache: 4000.0 GiB wanted, "},
           {"--kv_memory=4000GiB", "free (lower --kv_memory=4000GiB)"},
           {"--kv_memory=100%", "--kv_memory: \"100%\": allowed are 1% to 99%"},
           {"--max_sequences=0", "--max_sequences"},
           {"--max_batched_tokens=63", "--max_sequences (64)"},
           {"--max_model_len=100000", "the model was made for 256 positions"},
           {"--default_strategy=every=0", "--default_strategy=every=0"},
           {"--strategies=Half=every=2", "--strategies=Half=every=2"},
           {"--strategies=half", "NAME=SPEC"},
           {"--strategies=a=full;a=full", "\"a\" is named twice"},
           {"--strategies=half=leaders=1", "--strategies=half=leaders=1"},
           {"--max_message_mib=0", "--max_message_mib"},
           {"--drain_timeout=-1s", "--drain_timeout"},
           {"--reflection=maybe", "allowed are auto, on, off"},
           {"--log_format=xml", "allowed are text, json"},
           {"--host=192.0.2.1", "cannot listen on 192.0.2.1:0: "},
           {"--host=::1", "--host must be an IPv4 address or a name"},
           {"--admission=lazy", "allowed are reserve, optimistic"},
           {"--no_such_flag=1", "no_such_flag"},
           {"--grpc_port=many", "grpc_port"},
           {"extra", "unexpected argument"}}) {
    EXPECT_THAT(FailureOf({kTiny, c.flag}), HasSubstr(c.says)) << c.flag;
  }
  EXPECT_THAT(FailureOf({}), HasSubstr("--model"));
}

TEST(StartFailureTest, ConfigFile) {
  const std::string path = absl::StrCat(testing::TempDir(), "/config.yaml");
  const auto write = [&](const std::string& text) {
    std::ofstream(path) << text;
  };
  const std::string flag = "--config=" + path;
  write("model: tests/golden/llama-tied\nmax_sequence: 3\n");
  EXPECT_THAT(FailureOf({flag}),
              HasSubstr(path + ":2: unknown key \"max_sequence\""));
  write("max_sequences: many\n");
  EXPECT_THAT(FailureOf({flag, kTiny}), HasSubstr(path + ":1: \"many\""));
  write("- a\n- b\n");
  EXPECT_THAT(FailureOf({flag, kTiny}), HasSubstr("not a map"));
  write("threads: 1\nthreads: 2\n");
  EXPECT_THAT(FailureOf({flag, kTiny}), HasSubstr(path + ":2: "));
  write("host: [a, b]\n");
  EXPECT_THAT(FailureOf({flag, kTiny}), HasSubstr(path + ":1: "));
  write("strategies: {half: \"every=2;q=full\"}\n");
  EXPECT_THAT(FailureOf({flag, kTiny}), HasSubstr(path + ":1: "));
  write("strategies:\n  h=every=2;q: full\n");
  EXPECT_THAT(FailureOf({flag, kTiny}), HasSubstr(path + ":2: "));
  write("strategies: {third: leaders=0,2,5}\n");
  EXPECT_THAT(FailureOf({flag, kTiny}), HasSubstr("in quotes"));
  write("host: a: b\n");
  EXPECT_THAT(FailureOf({flag, kTiny}), HasSubstr(path + ":"));
  EXPECT_THAT(FailureOf({"--config=/nonexistent.yaml"}),
              HasSubstr("/nonexistent.yaml: cannot be read"));
  EXPECT_THAT(FailureOf({"--config=/tmp"}), HasSubstr("/tmp: cannot be read"));
  write("");  // says nothing, like a file of comments
  EXPECT_THAT(FailureOf({flag}), HasSubstr("--model is needed"));
  write("# nothing\n");
  EXPECT_THAT(FailureOf({flag}), HasSubstr("--model is needed"));

  // The command line wins.
  write("page_tokens: 17\n");
  EXPECT_THAT(FailureOf({flag, kTiny}), HasSubstr("--page_tokens=17"));
  write(
      "model: /nonexistent\npage_tokens: 17\nkv_memory: 4MiB\n"
      "strategies:\n  half: every=2\n  quarter: every=4\n"
      "default_strategy: quarter\ndrain_timeout: 1s\n"
      "admission: optimistic\n");
  ServerProcess server({"--page_tokens=32", flag, kTiny});
  ASSERT_TRUE(server.WaitUntilListening()) << server.Log();
  EXPECT_THAT(server.Log(), HasSubstr("default_strategy=every=4"));
  EXPECT_THAT(server.Log(), HasSubstr("admission=optimistic"));
}

TEST(StartFailureTest, VersionIsTheProgramsOwn) {
  ServerProcess server({"--version"});
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_THAT(server.out(), testing::MatchesRegex("strata_server [0-9.]+\n"));
}

TEST(StartFailureTest, HelpIsNoFailure) {
  ServerProcess server({"--help"});
  EXPECT_EQ(server.Wait(), 0);
  for (const char* flag : {"--model=", "--kv_memory=1GiB", "--config="}) {
    EXPECT_THAT(server.out(), HasSubstr(flag));
  }
}

}  // namespace
}  // namespace strata
