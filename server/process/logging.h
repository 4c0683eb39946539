#ifndef SERVER_PROCESS_LOGGING_H_
#define SERVER_PROCESS_LOGGING_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace strata {

enum class LogFormat { kText, kJson };
enum class LogLevel { kInfo, kWarning, kError };

// One key=value of a log line.  Text may be any bytes: it is escaped.  An empty
// optional is left out.
struct LogField {
  using Value =
      std::variant<std::monostate, bool, int64_t, double, std::string>;

  LogField(std::string_view key, std::string_view text)
      : key(key), value(std::string(text)) {}
  LogField(std::string_view key, const char* text)
      : LogField(key, std::string_view(text)) {}
  LogField(std::string_view key, const std::string& text)
      : LogField(key, std::string_view(text)) {}
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  LogField(std::string_view key, T number) : key(key), value(Widen(number)) {}
  template <typename T>
  LogField(std::string_view key, std::optional<T> number) : key(key) {
    if (number.has_value()) value = Widen(*number);
  }

  std::string_view key;  // a literal
  Value value;

 private:
  template <typename T>
  static Value Widen(T number) {
    if constexpr (std::is_same_v<T, bool>) return number;
    if constexpr (std::is_floating_point_v<T>) return double{number};
    return static_cast<int64_t>(number);
  }
};

// One line for `event`, newline included:
//   2026-11-29T19:00:03.123Z INFO ready grpc=127.0.0.1:8001 seconds=1.5
//   {"time":"2026-11-29T19:00:03.123Z","level":"info","event":"ready",...}
// Text of other bytes than letters, digits and ._:/=,@+- is quoted and escaped.
std::string FormatLogLine(LogFormat format, absl::Time time, LogLevel level,
                          std::string_view event,
                          std::initializer_list<LogField> fields);

// Writes one line an event to a file descriptor, each with one write.
//
// Thread-safe.
class Logger {
 public:
  // Does not own `fd`.
  Logger(LogFormat format, int fd) : format_(format), fd_(fd) {}

  void Info(std::string_view event, std::initializer_list<LogField> fields) {
    Log(LogLevel::kInfo, event, fields);
  }
  void Warning(std::string_view event, std::initializer_list<LogField> fields) {
    Log(LogLevel::kWarning, event, fields);
  }
  void Error(std::string_view event, std::initializer_list<LogField> fields) {
    Log(LogLevel::kError, event, fields);
  }

 private:
  void Log(LogLevel level, std::string_view event,
           std::initializer_list<LogField> fields);

  const LogFormat format_;
  const int fd_;
  absl::Mutex mu_;  // lines do not mix
};

}  // namespace strata

#endif  // SERVER_PROCESS_LOGGING_H_
