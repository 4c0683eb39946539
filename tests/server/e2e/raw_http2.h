#ifndef TESTS_SERVER_E2E_RAW_HTTP2_H_
#define TESTS_SERVER_E2E_RAW_HTTP2_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "base/check.h"

namespace strata {

// A connection that speaks HTTP/2 by the frame (RFC 9113), for what no gRPC
// client would send.
class RawHttp2 {
 public:
  enum FrameType : uint8_t {
    kData = 0,
    kHeaders = 1,
    kRstStream = 3,
    kSettings = 4,
    kPing = 6,
    kGoAway = 7,
  };
  enum Flag : uint8_t { kAck = 1, kEndStream = 1, kEndHeaders = 4 };
  struct Frame {
    uint8_t type = 0;
    uint8_t flags = 0;
    uint32_t stream = 0;
    std::string payload;
  };

  // `address` is 127.0.0.1:PORT.  Sends the preface and empty settings.
  explicit RawHttp2(const std::string& address)
      : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    int port = 0;
    STRATA_CHECK(
        absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    STRATA_CHECK(
        connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0);
    SendBytes("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    Send({kSettings, 0, 0, ""});
  }
  ~RawHttp2() { close(fd_); }
  RawHttp2(const RawHttp2&) = delete;
  RawHttp2& operator=(const RawHttp2&) = delete;

  void Send(const Frame& frame) {
    const auto size = static_cast<uint32_t>(frame.payload.size());
    std::string bytes;
    for (const int shift : {16, 8, 0}) {
      bytes.push_back(static_cast<char>(size >> shift));
    }
    bytes.push_back(static_cast<char>(frame.type));
    bytes.push_back(static_cast<char>(frame.flags));
    for (const int shift : {24, 16, 8, 0}) {
      bytes.push_back(static_cast<char>(frame.stream >> shift));
    }
    SendBytes(bytes + frame.payload);
  }

  // The next frame; nothing: the server has closed the connection.
  std::optional<Frame> Receive() {
    std::string head;
    if (!ReceiveBytes(9, &head)) return std::nullopt;
    const auto byte = [&](int i) { return static_cast<uint8_t>(head[i]); };
    Frame frame;
    frame.type = byte(3);
    frame.flags = byte(4);
    frame.stream =
        uint32_t{byte(5)} << 24 | byte(6) << 16 | byte(7) << 8 | byte(8);
    const size_t size = size_t{byte(0)} << 16 | byte(1) << 8 | byte(2);
    if (!ReceiveBytes(size, &frame.payload)) return std::nullopt;
    return frame;
  }

  // A gRPC call of `path` with an empty message and `more` headers.
  void SendCall(uint32_t stream, const std::string& path,
                const std::vector<std::pair<std::string, std::string>>& more) {
    BeginCall(stream, path, more);
    Send({kData, kEndStream, stream, std::string(5, '\0')});
  }
  // The same without the message.
  void BeginCall(
      uint32_t stream, const std::string& path,
      const std::vector<std::pair<std::string, std::string>>& more = {}) {
    std::string block;
    for (const auto& [name, value] :
         std::vector<std::pair<std::string, std::string>>{
             {":method", "POST"},
             {":scheme", "http"},
             {":path", path},
             {":authority", "test"},
             {"te", "trailers"},
             {"content-type", "application/grpc"}}) {
      AddHeader(name, value, &block);
    }
    for (const auto& [name, value] : more) AddHeader(name, value, &block);
    Send({kHeaders, kEndHeaders, stream, block});
  }

 private:
  // HPACK's literal without indexing (RFC 7541, 6.2.2).
  static void AddHeader(const std::string& name, const std::string& value,
                        std::string* block) {
    STRATA_CHECK(name.size() < 127 && value.size() < 127);
    block->push_back('\0');
    block->push_back(static_cast<char>(name.size()));
    *block += name;
    block->push_back(static_cast<char>(value.size()));
    *block += value;
  }
  void SendBytes(const std::string& bytes) {
    STRATA_CHECK(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                 static_cast<ssize_t>(bytes.size()));
  }
  bool ReceiveBytes(size_t count, std::string* bytes) {
    bytes->resize(count);
    return count == 0 || recv(fd_, bytes->data(), count, MSG_WAITALL) ==
                             static_cast<ssize_t>(count);
  }

  const int fd_;
};

}  // namespace strata

#endif  // TESTS_SERVER_E2E_RAW_HTTP2_H_
