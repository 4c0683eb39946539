#include "monitoring/process_metrics.h"

#include <dirent.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

namespace strata {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

// The fields of proc_pid_stat(5) that are used here.
struct Stat {
  int64_t user_ticks = 0;
  int64_t system_ticks = 0;
  int64_t start_ticks = 0;  // after the boot
  int64_t virtual_bytes = 0;
  int64_t resident_pages = 0;
};

std::optional<Stat> ReadStat() {
  std::ifstream file("/proc/self/stat");
  // The second field is the program's name in parentheses, which may hold
  // blanks and parentheses itself.
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  const char* position = line.c_str() + name_end + 1;
  char state = 0;
  Stat stat;
  const int num_read = std::sscanf(
      position,
      " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld %*d %*d %*d %*d "
      "%*d %*d %ld %ld %ld",
      &state, &stat.user_ticks, &stat.system_ticks, &stat.start_ticks,
      &stat.virtual_bytes, &stat.resident_pages);
  if (num_read != 6) return std::nullopt;
  return stat;
}

std::optional<int64_t> ReadBootTime() {
  std::ifstream file("/proc/stat");
  std::string word;
  while (file >> word) {
    int64_t seconds = 0;
    if (word == "btime" && file >> seconds) return seconds;
  }
  return std::nullopt;
}

std::optional<int64_t> CountOpenFiles() {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc/self/fd"),
                                                      closedir);
  if (directory == nullptr) return std::nullopt;
  int64_t count = 0;
  while (const dirent* entry = readdir(directory.get())) {
    if (entry->d_name[0] != '.') ++count;
  }
  return count - 1;  // the directory's own
}

MetricFamily OneValue(const char* name, const char* help, MetricType type,
                      double value) {
  MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  family.metric.resize(1);
  (type == MetricType::Counter ? family.metric[0].counter.value
                               : family.metric[0].gauge.value) = value;
  return family;
}

}  // namespace

std::vector<MetricFamily> ProcessMetrics::Collect() const {
  std::vector<MetricFamily> families;
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  if (const auto stat = ReadStat()) {
    families.push_back(OneValue(
        "process_cpu_seconds_total", "User and system CPU time spent.",
        MetricType::Counter, (stat->user_ticks + stat->system_ticks) / ticks));
    families.push_back(OneValue(
        "process_resident_memory_bytes", "Resident memory.", MetricType::Gauge,
        static_cast<double>(stat->resident_pages) * sysconf(_SC_PAGESIZE)));
    families.push_back(OneValue("process_virtual_memory_bytes",
                                "Virtual memory.", MetricType::Gauge,
                                static_cast<double>(stat->virtual_bytes)));
    if (const auto boot_seconds = ReadBootTime()) {
      families.push_back(OneValue(
          "process_start_time_seconds", "Start of the process, Unix time.",
          MetricType::Gauge,
          static_cast<double>(*boot_seconds) + stat->start_ticks / ticks));
    }
  }
  if (const auto open_files = CountOpenFiles()) {
    families.push_back(OneValue("process_open_fds", "Open file descriptors.",
                                MetricType::Gauge,
                                static_cast<double>(*open_files)));
  }
  return families;
}

}  // namespace strata
