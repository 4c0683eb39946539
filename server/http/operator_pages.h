#ifndef SERVER_HTTP_OPERATOR_PAGES_H_
#define SERVER_HTTP_OPERATOR_PAGES_H_

#include "monitoring/metrics_page.h"
#include "server/access/access_control.h"
#include "server/http/http_server.h"
#include "server/serving_state.h"

namespace strata {

// What orchestrators and Prometheus ask over HTTP: /metrics, /health/live,
// /health/ready, and /health, which is the latter.  Health answers 200 or 503.
// /metrics needs a key of `metrics_access`, unless that is null.  All outlive
// the pages.
HttpServer::Pages OperatorPages(const ServingState* state,
                                const MetricsPage* metrics,
                                const AccessControl* metrics_access);

}  // namespace strata

#endif  // SERVER_HTTP_OPERATOR_PAGES_H_
