#include "planner/run_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/flags/reflection.h"
#include "planner/plan_flags.h"
#include "tests/core/model/temp_files.h"

namespace strata {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

absl::StatusOr<std::string> RunWith(const std::vector<std::string>& args) {
  const absl::FlagSaver saver;
  const auto flags = PlanFlagsFrom(args);
  if (!flags.ok()) return flags.status();
  return RunPlan(*flags);
}

// The error's text: one line, for what the user has to mend.
std::string Error(const std::vector<std::string>& args) {
  const auto text = RunWith(args);
  EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument)
      << text.status();
  const std::string message(text.status().message());
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

TEST(ParseMemoryTest, PowersOf1000AndOf1024) {
  EXPECT_EQ(*ParseMemory("80GB"), 80'000'000'000);
  EXPECT_EQ(*ParseMemory("512MB"), 512'000'000);
  EXPECT_EQ(*ParseMemory("1TB"), 1'000'000'000'000);
  EXPECT_EQ(*ParseMemory("80GiB"), int64_t{80} << 30);
  EXPECT_EQ(*ParseMemory("3MiB"), 3 << 20);
  EXPECT_EQ(*ParseMemory("64KiB"), 64 << 10);
  EXPECT_EQ(*ParseMemory("123"), 123);
  for (const char* bad : {"", "GB", "-1GB", "1.5GB", "80 GB", "80gb", "80G",
                          "1KiBGB", "1GBGB", "9223372036854775807GB"}) {
    EXPECT_FALSE(ParseMemory(bad).ok()) << bad;
  }
}

TEST(RunPlanTest, ShowsThePapersModel) {
  const auto text = RunWith({"--shape", "qwen3-8b", "--memory", "80GB",
                             "--context=32768", "--workspace=0"});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("8.19 billion parameters, BF16, 15.3 GiB"));
  EXPECT_THAT(*text, HasSubstr("32895 positions"));
  EXPECT_THAT(*text, HasSubstr("full        36/36   144 KiB   4626.0 MiB"));
  EXPECT_THAT(*text, HasSubstr("every=4      9/36  36.0 KiB   1156.5 MiB"));
  EXPECT_THAT(*text, HasSubstr("An estimate: upper limits"));
  EXPECT_THAT(*text, HasSubstr("--backend=cuda --kv_memory="));
}

TEST(RunPlanTest, WritesTheSameAsJson) {
  const TempDirectory directory;
  const auto text =
      RunWith({"--shape=qwen3-8b", "--device=a100", "--context=8192",
               "--strategies=full,leaders=0,5", "--batch=2,10000",
               "--json=" + directory.Path("plan.json")});
  ASSERT_TRUE(text.ok()) << text.status();
  const auto plan =
      nlohmann::json::parse(ReadFile(directory.Path("plan.json")));
  EXPECT_EQ(plan["memory"]["bytes"], 80'000'000'000);
  EXPECT_EQ(plan["request"]["positions"], 8192 + 127);
  ASSERT_EQ(plan["strategies"].size(), 2u);
  const auto& row = plan["strategies"][1];
  EXPECT_EQ(row["strategy"], "leaders=0,5");
  EXPECT_EQ(row["leaders"], 2);
  EXPECT_EQ(row["kv_bytes_per_token"], 2 * 4096);
  EXPECT_EQ(row["pages_per_sequence"], 2 * 520);
  ASSERT_EQ(row["decode"].size(), 1u);  // 10,000 fit the pool but no step
  EXPECT_EQ(row["decode"][0]["batch"], 2);
  EXPECT_EQ(row["decode"][0]["limit"], "memory");
  EXPECT_EQ(row["first_token"]["limit"], "compute");
  EXPECT_DOUBLE_EQ(row["decode"][0]["tokens_per_second"].get<double>(),
                   2 / row["decode"][0]["seconds"].get<double>());

  const auto failed =
      RunWith({"--shape=qwen3-8b", "--json=/nowhere/plan.json"});
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kUnavailable);
}

TEST(RunPlanTest, ContextIsThatOfTheModelUnlessGiven) {
  const auto text = RunWith({"--shape=smollm2-135m"});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("a prompt of 8064 tokens, 128 generated"));
}

TEST(RunPlanTest, RatesMayBeGiven) {
  const auto cpu = RunWith({"--shape=smollm2-135m", "--device=cpu",
                            "--memory=8GB", "--read_bandwidth=40",
                            "--flops=0.5", "--threads=3", "--kv_type=f32"});
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  EXPECT_THAT(*cpu, HasSubstr("reads 40 GB/s, computes 0.5 TFLOP/s"));
  EXPECT_THAT(*cpu, Not(HasSubstr("measured")));
  EXPECT_THAT(*cpu, HasSubstr("--backend=cpu --precision=f32"));
  const auto gpu =
      RunWith({"--shape=smollm2-135m", "--device=gpu", "--memory=8GB",
               "--read_bandwidth=500", "--flops=100"});
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  EXPECT_THAT(*gpu, HasSubstr("reads 500 GB/s, computes 100 TFLOP/s"));
  EXPECT_THAT(*gpu, Not(HasSubstr("--kv_type")));
}

TEST(RunPlanTest, CachesOfFp8) {
  const auto text = RunWith({"--shape=qwen3-8b", "--kv_type=fp8"});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("K and V (fp8) of one layer"));
  EXPECT_THAT(*text, HasSubstr("--backend=cuda --kv_type=fp8 --kv_memory="));
}

TEST(RunPlanTest, WeightsMayBeFp8) {
  const auto text =
      RunWith({"--shape=qwen3-8b", "--memory=80GB", "--weight_type=fp8"});
  ASSERT_TRUE(text.ok()) << text.status();
  // 7.57 billion of a byte, and the embedding (151936 x 4096) in bf16.
  EXPECT_THAT(*text, HasSubstr("= weights 8.22 GiB (fp8) + workspace"));
  EXPECT_THAT(*text, HasSubstr("--backend=cuda --weight_type=fp8 "));
  EXPECT_THAT(Error({"--shape=qwen3-8b", "--weight_type=fp8", "--device=cpu",
                     "--memory=80GB"}),
              HasSubstr("--weight_type=fp8: allowed are others, with "
                        "--device=cpu"));
}

TEST(RunPlanTest, SeveralGpusHaveTheMemoryAndTheRatesOfAll) {
  const auto text =
      RunWith({"--shape=qwen3-8b", "--memory=80GB", "--workspace=1GiB",
               "--context=32768", "--tensor_parallel=4"});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("4 x H100 SXM, by its data sheet: reads "
                               "13400 GB/s, computes 3956 TFLOP/s"));
  // The weights, and the embedding (151936 x 4096) and norms three times more.
  EXPECT_THAT(*text, HasSubstr("298 GiB (320 GB) = weights 18.7 GiB + "
                               "workspace 4.00 GiB"));
  EXPECT_THAT(*text, HasSubstr("--backend=cuda --tensor_parallel=4 "));
  EXPECT_THAT(Error({"--shape=qwen3-8b", "--tensor_parallel=3"}),
              HasSubstr("--tensor_parallel: the model has 8 KV heads"));
  EXPECT_THAT(Error({"--shape=qwen3-8b", "--tensor_parallel=2", "--device=cpu",
                     "--memory=80GB"}),
              HasSubstr("--tensor_parallel=2: allowed are 1"));
  EXPECT_THAT(
      Error({"--shape=qwen3-8b", "--tensor_parallel=2", "--memory=81GiB"}),
      HasSubstr("--memory=86973087744: --device=h100 has"));
}

TEST(RunPlanTest, MeasuresTheCpu) {
  const auto text =
      RunWith({"--model=tests/golden/mistral", "--device=cpu", "--memory=1GB",
               "--context=100", "--output_tokens=5", "--threads=1",
               "--strategies=full"});
  if (absl::IsFailedPrecondition(text.status())) GTEST_SKIP() << text.status();
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("1 threads, measured now: reads "));
}

TEST(RunPlanTest, RefusesInOneLine) {
  const std::string shape = "--shape=qwen3-8b";
  EXPECT_THAT(Error({}), HasSubstr("either --model or --shape is needed"));
  EXPECT_THAT(Error({shape, "--model=x"}), HasSubstr("either --model or"));
  EXPECT_THAT(Error({"plan"}), HasSubstr("unexpected argument \"plan\""));
  EXPECT_THAT(Error({"--contxt=5"}), HasSubstr("unknown flag \"--contxt\""));
  EXPECT_THAT(Error({"--v=5"}), HasSubstr("unknown flag \"--v\""));
  EXPECT_THAT(Error({shape, "--context"}), HasSubstr("needs a value"));
  EXPECT_THAT(Error({shape, "--context=many"}),
              HasSubstr("--context=\"many\": it needs a whole number"));
  EXPECT_THAT(Error({shape, "--context=-1"}), HasSubstr("--context=-1"));
  EXPECT_THAT(Error({shape, "--output_tokens=0"}),
              HasSubstr("--output_tokens=0: allowed are 1 and more"));
  EXPECT_THAT(Error({shape, "--memory=80gb"}),
              HasSubstr("--memory: \"80gb\" is no size"));
  EXPECT_THAT(Error({shape, "--memory=9000000TB"}),
              HasSubstr("--memory=9000000TB: allowed are up to"));
  EXPECT_THAT(Error({shape, "--memory=8GB"}),
              HasSubstr("the weights take 15.3 GiB"));
  EXPECT_THAT(Error({shape, "--memory=80GB", "--device=l4"}),
              HasSubstr("--device=l4 has 24.0 GiB"));
  EXPECT_THAT(Error({shape, "--device=tpu"}),
              HasSubstr("\"tpu\" is no device: allowed are cpu, a10, "));
  EXPECT_THAT(Error({shape, "--device=cpu"}),
              HasSubstr("--memory is needed with --device=cpu"));
  EXPECT_THAT(Error({shape, "--device=gpu", "--memory=80GB"}),
              HasSubstr("--read_bandwidth and --flops are needed"));
  EXPECT_THAT(Error({shape, "--read_bandwidth=-3"}),
              HasSubstr("--read_bandwidth=-3: allowed are 0 and more"));
  EXPECT_THAT(Error({shape, "--flops=nan"}), HasSubstr("--flops=nan"));
  EXPECT_THAT(Error({shape, "--batch=1,zero"}), HasSubstr("--batch=\"1,zero"));
  EXPECT_THAT(Error({shape, "--batch="}), HasSubstr("--batch=\"\""));
  EXPECT_THAT(Error({shape, "--kv_type=f16"}),
              HasSubstr("--kv_type=\"f16\": allowed are bf16, f32, fp8"));
  EXPECT_THAT(Error({shape, "--kv_type=f32"}), HasSubstr("--device=cpu"));
  EXPECT_THAT(Error({shape, "--kv_type=fp8", "--device=cpu"}),
              HasSubstr("allowed are bf16, f32, with --device=cpu"));
  EXPECT_THAT(Error({shape, "--weight_type=q3"}),
              HasSubstr("--weight_type=\"q3\": allowed are bf16"));
  EXPECT_THAT(Error({shape, "--page_tokens=24"}),
              HasSubstr("--page_tokens=24: allowed are 4, 8, 16"));
  EXPECT_THAT(Error({shape, "--max_batched_tokens=0"}),
              HasSubstr("--max_batched_tokens=0"));
  EXPECT_THAT(Error({shape, "--threads=-1"}), HasSubstr("--threads=-1"));
  EXPECT_THAT(Error({shape, "--strategies=half"}),
              HasSubstr("--strategies: strategy \"half\""));
  EXPECT_THAT(Error({shape, "--strategies=full;"}), HasSubstr("--strategies"));
}

TEST(PlanHelpTest, NamesEveryFlag) {
  const std::string help = PlanHelp();
  for (const char* name : {"model", "shape", "memory", "context", "strategies",
                           "kv_type", "device", "read_bandwidth", "flops",
                           "batch", "output_tokens", "json"}) {
    EXPECT_THAT(help, HasSubstr("  --" + std::string(name) + "="));
  }
}

}  // namespace
}  // namespace strata
