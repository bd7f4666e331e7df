// SPDX-License-Identifier: Apache-2.0
// A GPU, used through the CUDA runtime: buffers, a stream, and times measured by events. If this build has
// kernels, they write and check the test data; otherwise the host does.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "tools/bench/cuda/cuda_functions.h"
#include "tools/bench/cuda/device_module.h"
#include "tools/bench/cuda/kernel_bodies.h"
#include "tools/bench/cuda/shared_gpus.h"
#include "tools/bench/device.h"

namespace dynamiccl {
namespace {

// Threads of a block and blocks of a launch: enough for every GPU so far. Each thread handles several
// elements of a large buffer.
constexpr unsigned kThreads = 256;
constexpr uint64_t kMaxBlocks = 4096;

cuda::Grid GridFor(uint64_t elements) {
  return {static_cast<unsigned>(std::clamp<uint64_t>((elements + kThreads - 1) / kThreads, 1, kMaxBlocks)),
          kThreads};
}

// A Device on the GPU of this rank. It owns the stream, the events and all buffers.
class CudaDevice final : public Device {
 public:
  explicit CudaDevice(std::shared_ptr<const cuda::Runtime> runtime) : runtime_(std::move(runtime)) {}

  ~CudaDevice() override {
    for (const cuda::Event event : events_) runtime_->EventDestroy(event);
    if (stream_ != nullptr) runtime_->StreamDestroy(stream_);
    for (void* buffer : buffers_) runtime_->Free(buffer);
  }

  Status Open(const RankPlace& place, bool null_stream);

  Result<std::byte*> Allocate(size_t bytes) override {
    void* buffer = nullptr;
    DYNAMICCL_CHECK_OK(runtime_->Check(runtime_->Malloc(&buffer, bytes == 0 ? 1 : bytes), "cudaMalloc"));
    buffers_.push_back(buffer);
    return static_cast<std::byte*>(buffer);
  }

  Status CopyIn(std::byte* device, const std::byte* host, size_t bytes) override {
    return runtime_->Check(runtime_->Memcpy(device, host, bytes, cuda::kHostToDevice), "cudaMemcpy");
  }
  Status CopyOut(std::byte* host, const std::byte* device, size_t bytes) override {
    return runtime_->Check(runtime_->Memcpy(host, device, bytes, cuda::kDeviceToHost), "cudaMemcpy");
  }
  Status FillInput(const CheckedCall& call, int rank, std::byte* to) override;
  Result<uint64_t> CountWrong(const CheckedCall& call, int rank, const std::byte* received) override;

  cudaStream_t stream() const override { return stream_; }
  Status Synchronize() override {
    return runtime_->Check(runtime_->StreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  void ClearMarks() override { marks_ = 0; }
  Status Mark() override;
  Result<std::vector<double>> Intervals() override;

 private:
  bool HasKernels();
  Result<cuda::CheckTally> ReadTally(const cuda::CheckTally* from);

  std::shared_ptr<const cuda::Runtime> runtime_;
  std::unique_ptr<cuda::DeviceModule> module_;
  bool looked_for_kernels_ = false;
  // Counters of checked and wrong elements in device memory. The first check allocates them.
  cuda::CheckTally* tally_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::vector<void*> buffers_;
  std::vector<cuda::Event> events_;
  // Number of events recorded since ClearMarks. The events are used again after each ClearMarks.
  size_t marks_ = 0;
};

// Sets NCCL_HOSTID when ranks of this host share GPUs (shared_gpus.h). Does nothing if the user has set
// NCCL_MULTI_RANK_GPU_ENABLE.
Status SeparateRanksOnSharedGpus(const RankPlace& place, int devices) {
  if (std::getenv("NCCL_MULTI_RANK_GPU_ENABLE") != nullptr) return {};
  DYNAMICCL_TRY(const std::optional<std::string> host, cuda::HostIdOnSharedGpus(place, devices));
  if (!host) return {};
  // Set the variable once: ranks may be threads of one process, which has one environment.
  static std::once_flag once;
  std::call_once(once, [&] {
    ::setenv("NCCL_HOSTID", host->c_str(), 0);
    if (place.local_rank < place.ranks_in_process)
      std::fprintf(
          stderr,
          "dynamiccl: %d ranks share %d GPU(s): each process is a host of its own to NCCL, over sockets\n",
          place.n_local_ranks, devices);
  });
  return {};
}

Status CudaDevice::Open(const RankPlace& place, bool null_stream) {
  int devices = 0;
  DYNAMICCL_CHECK_OK(runtime_->Check(runtime_->GetDeviceCount(&devices), "cudaGetDeviceCount"));
  if (devices < 1) return MakeError(ErrorKind::kUnavailable, "the CUDA runtime finds no GPU");
  DYNAMICCL_CHECK_OK(SeparateRanksOnSharedGpus(place, devices));
  DYNAMICCL_CHECK_OK(runtime_->Check(runtime_->SetDevice(place.local_rank % devices), "cudaSetDevice"));
  if (null_stream) return {};
  return runtime_->Check(runtime_->StreamCreate(&stream_), "cudaStreamCreate");
}

Status CudaDevice::Mark() {
  if (marks_ == events_.size()) {
    cuda::Event event = nullptr;
    DYNAMICCL_CHECK_OK(runtime_->Check(runtime_->EventCreate(&event), "cudaEventCreate"));
    events_.push_back(event);
  }
  return runtime_->Check(runtime_->EventRecord(events_[marks_++], stream_), "cudaEventRecord");
}

Result<std::vector<double>> CudaDevice::Intervals() {
  std::vector<double> intervals;
  for (size_t i = 1; i < marks_; ++i) {
    float milliseconds = 0;
    DYNAMICCL_CHECK_OK(runtime_->Check(runtime_->EventElapsedTime(&milliseconds, events_[i - 1], events_[i]),
                                       "cudaEventElapsedTime"));
    intervals.push_back(static_cast<double>(milliseconds) * 1e3);
  }
  return intervals;
}

// Loads the kernels at first use. Returns false if this build has no kernels for this GPU. The host then
// checks the data.
bool CudaDevice::HasKernels() {
  if (looked_for_kernels_) return module_ != nullptr;
  looked_for_kernels_ = true;
  const std::string file = cuda::FindKernelFile();
  auto module = file.empty() ? Result<std::unique_ptr<cuda::DeviceModule>>() : cuda::DeviceModule::Load(file);
  if (module) module_ = std::move(*module);
  return module_ != nullptr;
}

Status CudaDevice::FillInput(const CheckedCall& call, int rank, std::byte* to) {
  if (!HasKernels()) return Device::FillInput(call, rank, to);
  const uint64_t elements = SendCount(call);
  DYNAMICCL_CHECK_OK(module_->Launch("dynamiccl_fill_input", GridFor(elements), stream_, call, rank, to,
                                     elements, uint64_t{ElementBytes(call.type)}));
  return Synchronize();
}

Result<cuda::CheckTally> CudaDevice::ReadTally(const cuda::CheckTally* from) {
  cuda::CheckTally tally;
  DYNAMICCL_CHECK_OK(
      CopyOut(reinterpret_cast<std::byte*>(&tally), reinterpret_cast<const std::byte*>(from), sizeof(tally)));
  return tally;
}

Result<uint64_t> CudaDevice::CountWrong(const CheckedCall& call, int rank, const std::byte* received) {
  if (!HasResult(call, rank)) return 0;
  if (!HasKernels()) return Device::CountWrong(call, rank, received);
  if (tally_ == nullptr) {
    DYNAMICCL_TRY(std::byte* const memory, Allocate(sizeof(cuda::CheckTally)));
    tally_ = reinterpret_cast<cuda::CheckTally*>(memory);
  }
  const uint64_t elements = ReceiveCount(call);
  DYNAMICCL_CHECK_OK(runtime_->Check(runtime_->Memset(tally_, 0, sizeof(cuda::CheckTally)), "cudaMemset"));
  DYNAMICCL_CHECK_OK(module_->Launch("dynamiccl_check_result", GridFor(elements), stream_, call, rank,
                                     received, elements, uint64_t{ElementBytes(call.type)}, tally_));
  DYNAMICCL_CHECK_OK(Synchronize());
  DYNAMICCL_TRY(const cuda::CheckTally tally, ReadTally(tally_));
  if (tally.looked_at == elements) return tally.wrong;
  return MakeError(ErrorKind::kUnavailable, "the check on the GPU looked at {} of {} elements",
                   tally.looked_at, elements);
}

}  // namespace

Result<std::unique_ptr<Device>> OpenCudaDevice(const RankPlace& place, bool null_stream) {
  DYNAMICCL_TRY(std::shared_ptr<const cuda::Runtime> runtime, cuda::Runtime::Open());
  auto device = std::make_unique<CudaDevice>(std::move(runtime));
  DYNAMICCL_CHECK_OK(device->Open(place, null_stream));
  return device;
}

}  // namespace dynamiccl
