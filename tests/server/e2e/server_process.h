#ifndef TESTS_SERVER_E2E_SERVER_PROCESS_H_
#define TESTS_SERVER_E2E_SERVER_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace strata {

// The real strata_server as a child process, on free ports unless `flags` say
// otherwise.  Its log goes to a file.
class ServerProcess {
 public:
  explicit ServerProcess(std::vector<std::string> flags);
  // Kills it, if it still runs.
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // Reads stdout until the line `listening ...`; false if the process ended
  // without.
  bool WaitUntilListening();
  void Signal(int number);
  // Waits for the end: the exit code, or -1 for a signal.
  int Wait();

  const std::string& grpc_address() const { return grpc_address_; }
  const std::string& http_address() const { return http_address_; }
  // All that stderr holds by now.
  std::string Log() const;
  // All that stdout held.  After Wait.
  const std::string& out() const { return out_; }

 private:
  bool ReadOut();

  pid_t pid_ = 0;
  bool is_running_ = true;
  int out_fd_ = -1;
  std::string out_;
  std::string log_path_;
  std::string grpc_address_;
  std::string http_address_;
};

// A port that was free a moment ago.
int FreePort();

struct HttpAnswer {
  int status = 0;  // 0: no connection
  std::string head;
  std::string body;
};
// `address` is HOST:PORT, an IPv4 address.
HttpAnswer HttpRequest(const std::string& address, const std::string& request);
HttpAnswer HttpGet(const std::string& address, const std::string& path);

// Connections that send `begun` and then nothing more, until destroyed.
class SlowConnections {
 public:
  SlowConnections(const std::string& address, int count,
                  const std::string& begun);
  ~SlowConnections();
  SlowConnections(const SlowConnections&) = delete;
  SlowConnections& operator=(const SlowConnections&) = delete;

 private:
  std::vector<int> fds_;
};

}  // namespace strata

#endif  // TESTS_SERVER_E2E_SERVER_PROCESS_H_
