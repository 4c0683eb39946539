#ifndef SERVER_HTTP_HTTP_SERVER_H_
#define SERVER_HTTP_HTTP_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/access/access_control.h"

struct mg_connection;
struct mg_context;

namespace strata {

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// Answers GET and HEAD of a fixed set of pages, for probes and scrapers: small
// headers, short time limits, no files; enough threads that some slow clients
// do not keep the others waiting.
class HttpServer {
 public:
  // By path; given what the headers show.  Called on the server's threads,
  // several at once.
  using Pages =
      std::map<std::string, std::function<HttpResponse(const ShownKeys&)>>;

  // Listens on `host`:`port`; port 0: a free one.  UNAVAILABLE says why not.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      const std::string& host, int port, Pages pages);
  // Waits for the answers in progress.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }

 private:
  HttpServer(std::string host, Pages pages)
      : host_(std::move(host)), pages_(std::move(pages)) {}
  static int Handle(mg_connection* connection, void* self);
  HttpResponse Answer(const std::string& method, const std::string& path,
                      const ShownKeys& keys) const;

  const std::string host_;
  const Pages pages_;
  mg_context* context_ = nullptr;
  int port_ = 0;
};

}  // namespace strata

#endif  // SERVER_HTTP_HTTP_SERVER_H_
