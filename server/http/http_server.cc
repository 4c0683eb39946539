#include "server/http/http_server.h"

#include <civetweb.h>

#include <atomic>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/check.h"
#include "server/transport/listen_address.h"

namespace strata {
namespace {

// civetweb's own log: what it reports is the peer's fault (broken requests) or
// comes back from mg_start2.
int DropMessage(const mg_connection*, const char*) { return 1; }

const char* ReasonPhrase(int status) {
  return mg_get_response_code_text(nullptr, status);
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    const std::string& host, int port, Pages pages) {
  STRATA_RETURN_IF_ERROR(CheckCanListen(host, port));
  // Not make_unique: the constructor is private.
  std::unique_ptr<HttpServer> server(new HttpServer(host, std::move(pages)));
  const std::string address = JoinHostPort(host, port);
  if (host.find(':') != host.npos && !mg_check_feature(MG_FEATURES_IPV6)) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", address,
        ": civetweb was built without IPv6, so that --host must be an IPv4 "
        "address or a name"));
  }
  const char* options[] = {"listening_ports", address.c_str(),
                           // A connection occupies a thread, also one that says
                           // nothing: many threads, which cost little while
                           // idle, for one request each, not for long.
                           "num_threads", "64", "enable_keep_alive", "no",
                           "request_timeout_ms", "1000", "connection_queue",
                           "256", "max_request_size",
                           "8192",  // bytes of request line and headers
                           nullptr};
  mg_callbacks callbacks = {};
  callbacks.log_message = DropMessage;
  char reason[256] = "";
  mg_init_data init = {&callbacks, nullptr, options};
  unsigned code = 0;
  mg_error_data error = {&code, reason, sizeof(reason)};
  server->context_ = mg_start2(&init, &error);
  if (server->context_ == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address, ": ", reason));
  }
  mg_server_port ports[4] = {};
  STRATA_CHECK(mg_get_server_ports(server->context_, 4, ports) >= 1);
  server->port_ = ports[0].port;
  mg_set_request_handler(server->context_, "/", Handle, server.get());
  return server;
}

HttpServer::~HttpServer() {
  if (context_ == nullptr) return;
  // civetweb's listening thread looks for the end when somebody comes, or every
  // 2 s.
  std::atomic<bool> stopped = false;
  std::thread stopper([&] {
    mg_stop(context_);
    stopped = true;
  });
  while (!stopped) {
    Knock(host_, port_);
    absl::SleepFor(absl::Milliseconds(5));
  }
  stopper.join();
}

HttpResponse HttpServer::Answer(const std::string& method,
                                const std::string& path,
                                const ShownKeys& keys) const {
  const auto page = pages_.find(path);
  if (page == pages_.end()) return {.status = 404, .body = "no such page\n"};
  if (method != "GET" && method != "HEAD") {
    return {.status = 405, .body = "only GET and HEAD\n"};
  }
  return page->second(keys);
}

int HttpServer::Handle(mg_connection* connection, void* self) {
  const mg_request_info* request = mg_get_request_info(connection);
  const std::string method = request->request_method;
  ShownKeys keys;
  for (int i = 0; i < request->num_headers; ++i) {
    keys.AddFrom(absl::AsciiStrToLower(request->http_headers[i].name),
                 request->http_headers[i].value);
  }
  const HttpResponse response =
      static_cast<HttpServer*>(self)->Answer(method, request->local_uri, keys);
  std::string answer = absl::StrCat(
      "HTTP/1.1 ", response.status, " ", ReasonPhrase(response.status),
      "\r\nContent-Type: ", response.content_type,
      "\r\nContent-Length: ", response.body.size(),
      "\r\nCache-Control: no-store\r\nConnection: close\r\n",
      response.status == 405 ? "Allow: GET, HEAD\r\n" : "",
      response.status == 401 ? "WWW-Authenticate: Bearer\r\n" : "", "\r\n");
  if (method != "HEAD") answer += response.body;
  mg_write(connection, answer.data(), answer.size());
  return response.status;
}

}  // namespace strata
