#ifndef TESTS_SERVER_NATIVE_SERVICE_FIXTURE_H_
#define TESTS_SERVER_NATIVE_SERVICE_FIXTURE_H_

#include <string>

#include "monitoring/metrics_page.h"
#include "tests/monitoring/scraped_metrics.h"
#include "tests/server/native/tiny_server.h"

namespace strata {

inline constexpr int kContext = 256;  // of llama-tied

inline v1::GenerateRequest Endless(const std::string& label) {
  v1::GenerateRequest request = TinyServer::Greedy({3, 4}, "full", 250);
  request.set_request_id(label);
  return request;
}

inline ScrapedMetrics Scrape(TinyServer& server) {
  MetricsPage page;
  page.Publish(server.served.tiny.metrics.get());
  return ScrapedMetrics(page.Render());
}

inline double Rejected(TinyServer& server, const std::string& reason) {
  return Scrape(server).Sum("strata_request_rejected_total",
                            {"reason=\"" + reason + "\""});
}

inline double Finished(TinyServer& server, const std::string& reason) {
  return Scrape(server).Sum("strata_request_finished_total",
                            {"finished_reason=\"" + reason + "\""});
}

}  // namespace strata

#endif  // TESTS_SERVER_NATIVE_SERVICE_FIXTURE_H_
