#include "server/process/logging.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace strata {
namespace {

// What is not UTF-8 becomes U+FFFD.
std::string JsonText(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/false,
                                   nlohmann::json::error_handler_t::replace);
}

bool IsPlain(std::string_view text) {
  constexpr std::string_view kPlain = "._:/=,@+-";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           kPlain.find(c) != kPlain.npos;
  });
}

struct ValueText {
  LogFormat format;

  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return absl::StrCat(value); }
  std::string operator()(double value) const {
    // JSON has no other numbers.
    return std::isfinite(value) ? absl::StrCat(value) : "null";
  }
  std::string operator()(const std::string& value) const {
    return format == LogFormat::kText && IsPlain(value) ? value
                                                        : JsonText(value);
  }
};

struct LevelNames {
  const char* text;
  const char* json;
};

LevelNames NamesOf(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return {"INFO", "info"};
    case LogLevel::kWarning:
      return {"WARNING", "warning"};
    case LogLevel::kError:
      break;
  }
  return {"ERROR", "error"};
}

}  // namespace

std::string FormatLogLine(LogFormat format, absl::Time time, LogLevel level,
                          std::string_view event,
                          std::initializer_list<LogField> fields) {
  const bool is_json = format == LogFormat::kJson;
  const std::string when =
      absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", time, absl::UTCTimeZone());
  std::string line;
  if (is_json) {
    absl::StrAppend(&line, "{\"time\":\"", when, "\",\"level\":\"",
                    NamesOf(level).json, "\",\"event\":", JsonText(event));
  } else {
    absl::StrAppend(&line, when, " ", NamesOf(level).text, " ",
                    std::string(event));
  }
  for (const LogField& field : fields) {
    if (std::holds_alternative<std::monostate>(field.value)) continue;
    const std::string value = std::visit(ValueText{format}, field.value);
    const std::string key(field.key);
    if (is_json) {
      absl::StrAppend(&line, ",\"", key, "\":", value);
    } else {
      absl::StrAppend(&line, " ", key, "=", value);
    }
  }
  return line.append(is_json ? "}\n" : "\n");
}

void Logger::Log(LogLevel level, std::string_view event,
                 std::initializer_list<LogField> fields) {
  const std::string line =
      FormatLogLine(format_, absl::Now(), level, event, fields);
  absl::MutexLock lock(&mu_);
  // A log that cannot be written is no reason to stop serving.
  size_t written = 0;
  while (written < line.size()) {
    const ssize_t count =
        write(fd_, line.data() + written, line.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    written += count;
  }
}

}  // namespace strata
