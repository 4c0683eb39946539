#ifndef KERNELS_PARALLEL_MEETING_H_
#define KERNELS_PARALLEL_MEETING_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace strata {

// Where the threads of all ranks wait for each other.
class Meeting {
 public:
  // Among the flags that Meet returns: the meeting has ended.
  static constexpr uint32_t kEnded = uint32_t{1} << 31;

  // REQUIRES: num_ranks > 0.
  explicit Meeting(int num_ranks) : num_ranks_(num_ranks) {}

  // Returns once every rank has called it as often as this one: the flags of
  // all of them, or-ed.  What any of them wrote before is visible to all after.
  uint32_t Meet(uint32_t flags = 0);

  // Nobody waits from now on, as one of the ranks will never come: Meet returns
  // at once.
  void End();

 private:
  const int num_ranks_;
  std::mutex mu_;
  std::condition_variable all_came_;
  int num_came_ = 0;
  uint64_t round_ = 0;
  uint32_t coming_ = 0;  // flags of this round so far
  uint32_t agreed_ = 0;  // of the round before
  bool has_ended_ = false;
};

}  // namespace strata

#endif  // KERNELS_PARALLEL_MEETING_H_
