#ifndef MONITORING_BUCKETS_H_
#define MONITORING_BUCKETS_H_

#include <vector>

namespace strata {

// Upper bounds of histogram buckets: vLLM's, so that its dashboards' panels
// read the same, with finer ones below for small models.  Seconds, tokens or
// rows.
inline std::vector<double> FirstTokenSeconds() {
  return {.001, .0025, .005, .01, .02, .04, .06, .08, .1,  .25, .5,  .75,
          1,    2.5,   5,    7.5, 10,  20,  40,  80,  160, 640, 2560};
}

inline std::vector<double> TokenSeconds() {
  return {.0005, .001, .0025, .005, .01, .025, .05, .075, .1, .15, .2, .3,
          .4,    .5,   .75,   1,    2.5, 5,    7.5, 10,   20, 40,  80};
}

inline std::vector<double> RequestSeconds() {
  return {.001, .0025, .005, .01, .025, .05, .1,  .2,   .3,  .5,
          .8,   1,     1.5,  2,   2.5,  5,   10,  15,   20,  30,
          40,   50,    60,   120, 240,  480, 960, 1920, 7680};
}

inline std::vector<double> StepSeconds() {
  return {.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05,
          .1,    .25,    .5,    1,    2.5,   5,    10,  30};
}

inline std::vector<double> StepRows() {
  return {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};
}

// 1, 2, 5, 10, ... up to `max`.
inline std::vector<double> TokenCounts(int max) {
  std::vector<double> bounds;
  for (double decade = 1;; decade *= 10) {
    for (const double digit : {1, 2, 5}) {
      if (!bounds.empty() && digit * decade > max) return bounds;
      bounds.push_back(digit * decade);
    }
  }
}

}  // namespace strata

#endif  // MONITORING_BUCKETS_H_
