#include "kernels/cuda/nccl_collective.h"

#include <dlfcn.h>

#include <mutex>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/parallel/meeting.h"

// UNRUN: see the header.
namespace strata::cuda {
namespace {

constexpr char kLibrary[] = "libnccl.so.2";

// What is used of nccl.h, which comes with the library and not with the CUDA
// toolkit.  The names are those of that file; so is the ABI, which NCCL keeps
// within version 2.
using ncclComm_t = struct ncclComm*;
using ncclResult_t = int;    // an enum there
using ncclDataType_t = int;  // the same
using ncclRedOp_t = int;     // the same
constexpr ncclResult_t ncclSuccess = 0;
constexpr ncclDataType_t ncclFloat32 = 7;
constexpr ncclRedOp_t ncclSum = 0;

// The functions of the library that are called, by name.
struct Functions {
  ncclResult_t (*CommInitAll)(ncclComm_t* comms, int num_devices,
                              const int* devices) = nullptr;
  ncclResult_t (*CommDestroy)(ncclComm_t comm) = nullptr;
  ncclResult_t (*CommAbort)(ncclComm_t comm) = nullptr;
  ncclResult_t (*AllReduce)(const void* send, void* receive, size_t count,
                            ncclDataType_t type, ncclRedOp_t op,
                            ncclComm_t comm, cudaStream_t stream) = nullptr;
  const char* (*GetErrorString)(ncclResult_t result) = nullptr;
};

// False if one is not there.
bool Find(void* library, Functions* f) {
  bool found = true;
  const auto find = [&](auto* function, const char* name) {
    *function = reinterpret_cast<std::decay_t<decltype(*function)>>(
        dlsym(library, name));
    found &= *function != nullptr;
  };
  find(&f->CommInitAll, "ncclCommInitAll");
  find(&f->CommDestroy, "ncclCommDestroy");
  find(&f->CommAbort, "ncclCommAbort");
  find(&f->AllReduce, "ncclAllReduce");
  find(&f->GetErrorString, "ncclGetErrorString");
  return found;
}

// What the ranks have in common.
class Group {
 public:
  Group(const Functions& f, const std::vector<ncclComm_t>& comms)
      : f_(f), meeting_(static_cast<int>(comms.size())), ranks_(comms.size()) {
    for (size_t i = 0; i < comms.size(); ++i) ranks_[i].comm = comms[i];
  }

  absl::Status AllReduce(int rank, float* x, int64_t count,
                         cudaStream_t stream) {
    const std::lock_guard lock(ranks_[rank].mu);
    if (ranks_[rank].comm == nullptr) {
      return absl::InternalError("another GPU has failed");
    }
    const ncclResult_t result =
        f_.AllReduce(x, x, static_cast<size_t>(count), ncclFloat32, ncclSum,
                     ranks_[rank].comm, stream);
    if (result == ncclSuccess) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("NCCL, the sum over all GPUs: ",
                                            f_.GetErrorString(result)));
  }

  Meeting& meeting() { return meeting_; }

  // Ends the kernels of all ranks: each waits for the others'.
  void Abort() {
    meeting_.End();
    for (Rank& rank : ranks_) Release(&rank, f_.CommAbort);
  }
  void Destroy(int rank) { Release(&ranks_[rank], f_.CommDestroy); }

 private:
  struct Rank {
    std::mutex mu;              // held by calls with comm
    ncclComm_t comm = nullptr;  // null: released
  };

  static void Release(Rank* rank, ncclResult_t (*release)(ncclComm_t comm)) {
    const std::lock_guard lock(rank->mu);
    if (rank->comm != nullptr) release(rank->comm);
    rank->comm = nullptr;
  }

  const Functions f_;
  Meeting meeting_;
  std::vector<Rank> ranks_;
};

class NcclCollective final : public Collective {
 public:
  NcclCollective(std::shared_ptr<Group> group, int rank)
      : group_(std::move(group)), rank_(rank) {}
  ~NcclCollective() override { group_->Destroy(rank_); }

  absl::Status AllReduce(float* x, int64_t count,
                         cudaStream_t stream) override {
    return group_->AllReduce(rank_, x, count, stream);
  }
  uint32_t Meet(uint32_t flags) override {
    return group_->meeting().Meet(flags);
  }
  void Abort() override { group_->Abort(); }

 private:
  const std::shared_ptr<Group> group_;
  const int rank_;
};

absl::StatusOr<Functions> LoadFunctions() {
  // It stays loaded: its threads may outlive a communicator.
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    library = dlopen(absl::StrCat("/usr/local/cuda/lib64/", kLibrary).c_str(),
                     RTLD_NOW | RTLD_LOCAL);
  }
  Functions f;
  if (library != nullptr && Find(library, &f)) return f;
  return absl::FailedPreconditionError(absl::StrCat(
      "several GPUs need NCCL 2: ", dlerror(),
      "; install NVIDIA's package libnccl2, or nvidia-nccl-cu13 of PyPI with "
      "its lib folder in LD_LIBRARY_PATH"));
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Collective>>> OpenNccl(
    int num_ranks) {
  int num_devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&num_devices);
  if (error != cudaSuccess || num_devices == 0) {
    return absl::UnavailableError(absl::StrCat(
        "no CUDA device: ",
        error != cudaSuccess ? cudaGetErrorString(error) : "none is visible"));
  }
  if (num_devices < num_ranks) {
    return absl::InvalidArgumentError(
        absl::StrCat("this machine has ", num_devices, " GPUs"));
  }
  const absl::StatusOr<Functions> f = LoadFunctions();
  if (!f.ok()) return f.status();
  std::vector<int> devices(num_ranks);
  std::iota(devices.begin(), devices.end(), 0);
  std::vector<ncclComm_t> comms(num_ranks);
  const ncclResult_t result =
      f->CommInitAll(comms.data(), num_ranks, devices.data());
  if (result != ncclSuccess) {
    return absl::FailedPreconditionError(absl::StrCat(
        "NCCL over ", num_ranks, " GPUs: ", f->GetErrorString(result),
        " (NCCL_DEBUG=WARN says more)"));
  }
  const auto group = std::make_shared<Group>(*f, comms);
  std::vector<std::unique_ptr<Collective>> collectives;
  for (int rank = 0; rank < num_ranks; ++rank) {
    collectives.push_back(std::make_unique<NcclCollective>(group, rank));
  }
  return collectives;
}

}  // namespace strata::cuda
