#include "server/process/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"

namespace strata {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(OptionsTest, ByteSizesAreWrittenInWholeUnits) {
  EXPECT_EQ(FormatByteSize(0), "0 bytes");
  EXPECT_EQ(FormatByteSize(1023), "1023 bytes");
  EXPECT_EQ(FormatByteSize(1 << 10), "1KiB");
  EXPECT_EQ(FormatByteSize((1 << 20) + (1 << 10)), "1025KiB");
  EXPECT_EQ(FormatByteSize(3 << 20), "3MiB");
  EXPECT_EQ(FormatByteSize(int64_t{1025} << 30), "1025GiB");
}

TEST(OptionsTest, ByteSizes) {
  EXPECT_EQ(*ParseByteSize("1"), 1);
  EXPECT_EQ(*ParseByteSize("64KiB"), 64 << 10);
  EXPECT_EQ(*ParseByteSize("3MiB"), 3 << 20);
  EXPECT_EQ(*ParseByteSize("5GiB"), int64_t{5} << 30);
  EXPECT_EQ(*ParseByteSize("9223372036854775807"),
            std::numeric_limits<int64_t>::max());
  for (const char* bad :
       {"", "GiB", "-1", "+1", "1GB", "1 GiB", "1.5GiB", "0x10", "1gib",
        "9223372036854775808", "9999999999GiB", "1KiBKiB"}) {
    EXPECT_FALSE(ParseByteSize(bad).ok()) << bad;
  }
}

TEST(OptionsTest, MemorySizesAreBytesOrAPart) {
  EXPECT_EQ(ParseMemorySize("3MiB")->BytesOf(7), 3 << 20);
  EXPECT_EQ(ParseMemorySize("90%")->BytesOf(1000), 900);
  EXPECT_EQ(ParseMemorySize("1%")->percent, 1);
  EXPECT_EQ(ParseMemorySize("99%")->percent, 99);
  EXPECT_EQ(FormatMemorySize({.bytes = 3 << 20}), "3MiB");
  EXPECT_EQ(FormatMemorySize({.percent = 7}), "7%");
  // No product that would be too large.
  EXPECT_GT((MemorySize{.percent = 99}.BytesOf(int64_t{1} << 62)), 0);
  for (const char* bad : {"", "%", "0%", "100%", "-1%", "+5%", "9.5%", "90 %",
                          "90%%", "1GiB%", "99999999999%"}) {
    EXPECT_FALSE(ParseMemorySize(bad).ok()) << bad;
  }
}

TEST(OptionsTest, NamedStrategies) {
  EXPECT_THAT(
      *ParseNamedStrategies("half=every=2;quarter=keep=0.25"),
      ElementsAre(Pair("half", "every=2"), Pair("quarter", "keep=0.25")));
  EXPECT_THAT(*ParseNamedStrategies(""), ElementsAre());
  EXPECT_THAT(*ParseNamedStrategies("a=full;"), ElementsAre(Pair("a", "full")));
  EXPECT_FALSE(ParseNamedStrategies("half").ok());
  EXPECT_FALSE(ParseNamedStrategies("=every=2").ok());
  EXPECT_FALSE(ParseNamedStrategies("half=").ok());
  EXPECT_FALSE(ParseNamedStrategies("a=full;a=full").ok());
}

TEST(OptionsTest, ModelNameIsTheLastPartOfThePath) {
  ServerOptions options;
  const auto name = [&](const std::string& model) {
    options.model = model;
    return options.ModelName();
  };
  EXPECT_EQ(name("/models/SmolLM2.Q4_1.gguf"), "SmolLM2.Q4_1");
  EXPECT_EQ(name("models/tiny/"), "tiny");
  EXPECT_EQ(name("tiny"), "tiny");
  EXPECT_EQ(name("/"), "model");
  options.adapter = "adapters/mine/";
  EXPECT_EQ(name("models/tiny.gguf"), "tiny+mine");
  options.served_model_name = "other";
  EXPECT_EQ(name("tiny"), "other");
}

TEST(OptionsTest, DefaultsNeedOnlyAModel) {
  ServerOptions options;
  EXPECT_FALSE(options.Validate().ok());
  options.model = "m";
  EXPECT_TRUE(options.Validate().ok());
  EXPECT_GE(options.NumThreads(), 1);
  options.threads = 3;
  EXPECT_EQ(options.NumThreads(), 3);
}

TEST(OptionsTest, PageTokensArePowersOfTwo) {
  ServerOptions options;
  options.model = "m";
  for (int tokens = 0; tokens <= 300; ++tokens) {
    options.page_tokens = tokens;
    EXPECT_EQ(options.Validate().ok(), tokens == 4 || tokens == 8 ||
                                           tokens == 16 || tokens == 32 ||
                                           tokens == 64 || tokens == 128)
        << tokens;
  }
}

TEST(OptionsTest, Fp8WeightsAreForGpus) {
  ServerOptions options;
  options.model = "m";
  options.weight_type = "fp8";
  for (const char* backend : {"auto", "cuda"}) {
    options.backend = backend;
    EXPECT_TRUE(options.Validate().ok()) << backend;
  }
  options.backend = "cpu";
  EXPECT_EQ(options.Validate(),
            absl::InvalidArgumentError(
                "--weight_type=fp8: allowed are auto, with --backend=cpu"));
  options.backend = "auto";
  options.precision = "f32";
  EXPECT_EQ(options.Validate(),
            absl::InvalidArgumentError(
                "--weight_type=fp8: allowed are auto, with --precision=f32"));
  options.weight_type = "q8_0";
  EXPECT_EQ(
      options.Validate(),
      absl::InvalidArgumentError("--weight_type=q8_0: allowed are auto, fp8"));
}

TEST(OptionsTest, Fp8CachesAreForGpus) {
  ServerOptions options;
  options.model = "m";
  const auto error = [&](const char* kv_type, const char* backend,
                         const char* precision) {
    options.kv_type = kv_type;
    options.backend = backend;
    options.precision = precision;
    return std::string(options.Validate().message());
  };
  EXPECT_EQ(error("fp8", "auto", "auto"), "");
  EXPECT_EQ(error("fp8", "cuda", "auto"), "");
  EXPECT_EQ(error("auto", "cpu", "f32"), "");
  EXPECT_EQ(error("fp8", "cpu", "auto"),
            "--kv_type=fp8: allowed are auto, with --backend=cpu");
  EXPECT_EQ(error("fp8", "auto", "f32"),
            "--kv_type=fp8: allowed are auto, with --precision=f32");
  EXPECT_EQ(error("int8", "cuda", "auto"),
            "--kv_type=int8: allowed are auto, fp8");
}

TEST(OptionsTest, AdmissionIsReserveOrOptimistic) {
  ServerOptions options;
  options.model = "m";
  EXPECT_EQ(options.admission, "reserve");
  options.admission = "optimistic";
  EXPECT_TRUE(options.Validate().ok());
  for (const char* bad : {"", "Reserve", "lazy"}) {
    options.admission = bad;
    EXPECT_EQ(
        std::string(options.Validate().message()),
        absl::StrCat("--admission=", bad, ": allowed are reserve, optimistic"));
  }
}

TEST(OptionsTest, StreamsAreMoreThanCanRunAndWait) {
  ServerOptions options;
  options.max_sequences = 10;
  options.max_queued_requests = 100;
  EXPECT_EQ(options.MaxConcurrentStreams(), 2 * 110 + 256);
  EXPECT_EQ(options.MaxLiveCalls(), 2 * 110 + 256);
  options.max_queued_requests = std::numeric_limits<int>::max();
  EXPECT_EQ(options.MaxConcurrentStreams(), std::numeric_limits<int>::max());
  options.max_concurrent_streams = 1;
  EXPECT_EQ(options.MaxConcurrentStreams(), 1);
  options.max_live_calls = 2;
  EXPECT_EQ(options.MaxLiveCalls(), 2);
}

TEST(OptionsTest, TimesHaveBounds) {
  ServerOptions options;
  options.model = "m";
  for (const absl::Duration bad :
       {absl::ZeroDuration(), absl::Nanoseconds(999'999),
        absl::Hours(24) + absl::Nanoseconds(1), absl::InfiniteDuration()}) {
    for (absl::Duration* time :
         {&options.keepalive_time, &options.keepalive_timeout,
          &options.stall_limit}) {
      const absl::Duration good = *time;
      *time = bad;
      EXPECT_FALSE(options.Validate().ok()) << bad;
      *time = good;
    }
  }
  options.shutdown_delay = -absl::Nanoseconds(1);
  EXPECT_FALSE(options.Validate().ok());
  options.shutdown_delay = absl::ZeroDuration();
  EXPECT_TRUE(options.Validate().ok());
}

TEST(OptionsTest, PressureThresholdIsAPartOfThePool) {
  ServerOptions options;
  options.model = "m";
  EXPECT_TRUE(options.demote_under_pressure);
  for (double good : {1e-9, 0.9, 1.0}) {
    options.pressure_threshold = good;
    EXPECT_TRUE(options.Validate().ok()) << good;
  }
  for (double bad : {0.0, -0.5, 1.01, std::nan("")}) {
    options.pressure_threshold = bad;
    EXPECT_NE(options.Validate().message().find("--pressure_threshold="),
              absl::string_view::npos)
        << bad;
  }
}

}  // namespace
}  // namespace strata
