#include "server/process/logging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace strata {
namespace {

const absl::Time kTime = absl::FromUnixMillis(1795979156007);

TEST(LoggingTest, TextLine) {
  EXPECT_EQ(FormatLogLine(LogFormat::kText, kTime, LogLevel::kInfo, "ready",
                          {{"grpc", "127.0.0.1:8001"},
                           {"seconds", 1.5},
                           {"layers", 30},
                           {"bytes", uint64_t{1} << 40},
                           {"unknown", std::optional<double>()},
                           {"known", std::optional<int>(0)},
                           {"warm", true}}),
            "2026-11-29T19:05:56.007Z INFO ready grpc=127.0.0.1:8001 "
            "seconds=1.5 layers=30 bytes=1099511627776 known=0 warm=true\n");
}

TEST(LoggingTest, JsonLine) {
  EXPECT_EQ(
      FormatLogLine(
          LogFormat::kJson, kTime, LogLevel::kWarning, "ready",
          {{"grpc", "127.0.0.1:8001"}, {"seconds", 1.5}, {"warm", false}}),
      "{\"time\":\"2026-11-29T19:05:56.007Z\",\"level\":\"warning\","
      "\"event\":\"ready\",\"grpc\":\"127.0.0.1:8001\",\"seconds\":1.5,"
      "\"warm\":false}\n");
}

TEST(LoggingTest, HostileTextStaysInOneLine) {
  const std::string hostile("a\nERROR b=\"c\\\x00\x1b[31m\xff\xc3", 21);
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    const std::string line = FormatLogLine(format, kTime, LogLevel::kError,
                                           "request", {{"label", hostile}});
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    for (const char c : line.substr(0, line.size() - 1)) {
      EXPECT_GE(static_cast<unsigned char>(c), 0x20) << line;
    }
  }
  EXPECT_EQ(FormatLogLine(LogFormat::kText, kTime, LogLevel::kInfo, "e",
                          {{"a", ""}, {"b", "x y"}, {"c", "größe"}}),
            "2026-11-29T19:05:56.007Z INFO e a=\"\" b=\"x y\" c=\"größe\"\n");
}

TEST(LoggingTest, JsonIsValidForAnyBytesAndNumbers) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const std::string line =
      FormatLogLine(LogFormat::kJson, kTime, LogLevel::kInfo, "e",
                    {{"bytes", bytes},
                     {"nan", std::numeric_limits<double>::quiet_NaN()},
                     {"inf", HUGE_VAL}});
  EXPECT_TRUE(nlohmann::json::accept(line)) << line;
}

TEST(LoggingTest, ThreadsDoNotMixTheirLines) {
  const std::string path = testing::TempDir() + "/log";
  FILE* const file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  Logger logger(LogFormat::kJson, fileno(file));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 250; ++i) {
        logger.Info("line", {{"text", std::string(257, 'x')}, {"i", i}});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::fclose(file);
  int num_lines = 0;
  std::ifstream written(path);
  for (std::string line; std::getline(written, line); ++num_lines) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  }
  EXPECT_EQ(num_lines, 1000);
}

}  // namespace
}  // namespace strata
