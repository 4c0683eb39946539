#include "tests/load/server_page.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"

namespace strata {
namespace {

// The sum of the samples of family `name` that carry `label`, each written
// name="value"; "": all.
double Sum(const std::vector<absl::string_view>& lines, absl::string_view name,
           absl::string_view label = "") {
  double sum = 0;
  for (const absl::string_view line : lines) {
    const size_t blank = line.rfind(' ');
    double value = 0;
    if (line.substr(0, line.find_first_of("{ ")) == name &&
        absl::StrContains(line, label) &&
        absl::SimpleAtod(line.substr(blank + 1), &value)) {
      sum += value;
    }
  }
  return sum;
}

class Socket {
 public:
  // Connects; is_open() says whether that went well.
  Socket(const std::string& host, const std::string& port) {
    addrinfo hints = {};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return;
    for (const addrinfo* at = found; at != nullptr && fd_ < 0;
         at = at->ai_next) {
      Connect(*at);
    }
    freeaddrinfo(found);
  }
  ~Socket() { Close(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool is_open() const { return fd_ >= 0; }

  bool Send(const std::string& text) {
    return send(fd_, text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }

  // Until the other side closes; false: an error, or too long a wait.
  bool ReceiveAll(std::string* text) {
    char buffer[1 << 14];
    while (true) {
      const ssize_t count = recv(fd_, buffer, sizeof(buffer), 0);
      if (count <= 0) return count == 0;
      text->append(buffer, count);
    }
  }

 private:
  void Connect(const addrinfo& at) {
    fd_ = socket(at.ai_family, at.ai_socktype | SOCK_CLOEXEC, at.ai_protocol);
    if (fd_ < 0) return;
    const timeval patience = {.tv_sec = 5, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(fd_, at.ai_addr, at.ai_addrlen) != 0) Close();
  }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

  int fd_ = -1;
};

}  // namespace

absl::StatusOr<ServerPage> ServerPage::Parse(std::string_view page) {
  const std::vector<absl::string_view> lines =
      absl::StrSplit(absl::string_view(page.data(), page.size()), '\n');
  constexpr char kFinished[] = "strata_request_finished_total";
  constexpr char kRejected[] = "strata_request_rejected_total";
  constexpr char kBytes[] = "strata_kv_cache_bytes";
  const ServerPage sums = {
      .finished = Sum(lines, kFinished),
      .finished_whole = Sum(lines, kFinished, "finished_reason=\"stop\"") +
                        Sum(lines, kFinished, "finished_reason=\"length\""),
      .finished_errors = Sum(lines, kFinished, "finished_reason=\"error\""),
      .rejected = Sum(lines, kRejected),
      .rejected_queue_full = Sum(lines, kRejected, "reason=\"queue_full\""),
      .prompt_tokens = Sum(lines, "strata_prompt_tokens_total"),
      .generation_tokens = Sum(lines, "strata_generation_tokens_total"),
      .kv_pool_bytes = Sum(lines, "strata_kv_pool_bytes"),
      .kv_bytes = Sum(lines, kBytes),
      .kv_held_bytes = Sum(lines, kBytes, "state=\"used\"") +
                       Sum(lines, kBytes, "state=\"reserved\""),
      .resident_bytes = Sum(lines, "process_resident_memory_bytes")};
  if (sums.kv_pool_bytes <= 0) {
    return absl::InvalidArgumentError(
        "this page holds no strata_kv_pool_bytes: is it Strata's?");
  }
  return sums;
}

absl::StatusOr<ServerPage> ScrapeServerPage(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == address.npos || colon == 0 || colon + 1 == address.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", address, "': must be HOST:PORT"));
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  Socket socket(host, address.substr(colon + 1));
  std::string answer;
  if (!socket.is_open() ||
      !socket.Send(absl::StrCat("GET /metrics HTTP/1.0\r\nHost: ", address,
                                "\r\n\r\n")) ||
      !socket.ReceiveAll(&answer)) {
    return absl::UnavailableError(
        absl::StrCat("http://", address, "/metrics does not answer"));
  }
  const size_t head = answer.find("\r\n\r\n");
  const std::string status = answer.substr(0, answer.find('\r'));
  if (head == answer.npos || !absl::StrContains(status, " 200")) {
    return absl::UnavailableError(
        absl::StrCat("http://", address, "/metrics answers '", status, "'"));
  }
  return ServerPage::Parse(std::string_view(answer).substr(head + 4));
}

}  // namespace strata
