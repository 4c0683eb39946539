#ifndef SERVER_MODEL_INFO_H_
#define SERVER_MODEL_INFO_H_

#include <vector>

#include "core/load_report.h"
#include "proto/strata.pb.h"
#include "server/serving_state.h"

namespace strata {

// What GetModel, SetPolicy and GetLoad answer.
v1::GetModelResponse DescribeModel(const ServedModel& model);
// The default first, under the name "default", then the registered ones.
std::vector<v1::StrategyInfo> DescribeStrategies(const ServedModel& model);
v1::GetLoadResponse DescribeLoad(const LoadReport& load);

// Makes the metric series of every strategy label that the registry knows.
// Call it after the default or a name was set; one call at a time.
void PublishStrategyLabels(const ServedModel& model);

}  // namespace strata

#endif  // SERVER_MODEL_INFO_H_
