#include "tests/server/e2e/server_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/check.h"

extern char** environ;

namespace strata {
namespace {

constexpr char kBinary[] = "server/strata_server";  // in the runfiles

bool Has(const std::vector<std::string>& flags, const char* name) {
  for (const std::string& flag : flags) {
    if (absl::StartsWith(flag, absl::StrCat("--", name, "="))) return true;
  }
  return false;
}

pid_t Spawn(const std::vector<std::string>& args, int out_fd,
            const std::string& log_path) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, out_fd, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log_path.c_str(),
                                   O_CREAT | O_WRONLY | O_TRUNC | O_APPEND,
                                   0600);
  std::vector<char*> argv;
  for (const std::string& arg : args) {
    argv.push_back(const_cast<char*>(arg.c_str()));
  }
  argv.push_back(nullptr);
  pid_t pid = 0;
  STRATA_CHECK(
      posix_spawn(&pid, kBinary, &files, nullptr, argv.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&files);
  return pid;
}

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

ServerProcess::ServerProcess(std::vector<std::string> flags) {
  static std::atomic<int> counter = 0;
  log_path_ = absl::StrCat(testing::TempDir(), "/server", ++counter, ".log");
  std::vector<std::string> args = {kBinary};
  for (const char* port : {"grpc_port", "http_port"}) {
    if (!Has(flags, port)) args.push_back(absl::StrCat("--", port, "=0"));
  }
  args.insert(args.end(), flags.begin(), flags.end());
  int pipe_fds[2];
  STRATA_CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
  pid_ = Spawn(args, pipe_fds[1], log_path_);
  close(pipe_fds[1]);
  out_fd_ = pipe_fds[0];
}

ServerProcess::~ServerProcess() {
  if (is_running_) {
    Signal(SIGKILL);
    Wait();
  }
  if (testing::Test::HasFailure()) {
    std::fprintf(stderr, "--- log of the server\n%s---\n", Log().c_str());
  }
  close(out_fd_);
}

bool ServerProcess::ReadOut() {
  char buffer[4096];
  const ssize_t count = read(out_fd_, buffer, sizeof(buffer));
  if (count > 0) out_.append(buffer, count);
  return count > 0;
}

bool ServerProcess::WaitUntilListening() {
  while (out_.find('\n') == out_.npos) {
    if (!ReadOut()) return false;
  }
  // listening grpc=HOST:PORT http=HOST:PORT
  const std::vector<std::string> words =
      absl::StrSplit(out_.substr(0, out_.find('\n')), ' ');
  if (words.size() != 3 || words[0] != "listening") return false;
  grpc_address_ = words[1].substr(words[1].find('=') + 1);
  http_address_ = words[2].substr(words[2].find('=') + 1);
  return true;
}

void ServerProcess::Signal(int number) { kill(pid_, number); }

int ServerProcess::Wait() {
  while (ReadOut()) {
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  is_running_ = false;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string ServerProcess::Log() const {
  std::ifstream file(log_path_);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  STRATA_CHECK(bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0);
  STRATA_CHECK(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) ==
               0);
  close(fd);
  return ntohs(address.sin_port);
}

HttpAnswer HttpRequest(const std::string& address, const std::string& request) {
  int port = 0;
  STRATA_CHECK(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in to = Loopback(port);
  std::string text;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0 &&
      send(fd, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
    char buffer[65536];
    ssize_t count = 0;
    while ((count = recv(fd, buffer, sizeof(buffer), 0)) > 0) {
      text.append(buffer, count);
    }
  }
  close(fd);
  HttpAnswer answer;
  const size_t end = text.find("\r\n\r\n");
  if (end == text.npos) return answer;
  answer.head = text.substr(0, end);
  answer.body = text.substr(end + 4);
  const std::vector<std::string> words =
      absl::StrSplit(answer.head, absl::MaxSplits(' ', 2));
  if (words.size() < 2 || !absl::SimpleAtoi(words[1], &answer.status)) {
    answer.status = 0;
  }
  return answer;
}

SlowConnections::SlowConnections(const std::string& address, int count,
                                 const std::string& begun) {
  int port = 0;
  STRATA_CHECK(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  const sockaddr_in to = Loopback(port);
  for (int i = 0; i < count; ++i) {
    fds_.push_back(socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(connect(fds_.back(), reinterpret_cast<const sockaddr*>(&to),
                      sizeof(to)),
              0);
    EXPECT_EQ(send(fds_.back(), begun.data(), begun.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(begun.size()));
  }
}

SlowConnections::~SlowConnections() {
  for (const int fd : fds_) close(fd);
}

HttpAnswer HttpGet(const std::string& address, const std::string& path) {
  return HttpRequest(
      address, absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: x\r\n\r\n"));
}

}  // namespace strata
