// SPDX-License-Identifier: Apache-2.0
// Plans, launches and stops the kernel dynamiccl_background_load.
#include "tools/bench/cuda/background_load.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "src/base/clock.h"

namespace dynamiccl::cuda {
namespace {

// Nanoseconds of one period, in which a memory load is first busy and then idle. A period is long compared
// with a clock read and short compared with a collective of a megabyte.
constexpr uint64_t kPeriodNs = 50'000;
// Nanoseconds (120 s) after which the load ends by itself, so that a forgotten load does not keep the GPU. A
// row of a benchmark takes much less.
constexpr uint64_t kMaxNs = 120'000'000'000;
// Threads of a block: the most that CUDA allows. One block runs on each loaded multiprocessor.
constexpr unsigned kThreads = 1024;
// 1 GiB: several times the L2 cache of every GPU so far (60 MB on Hopper, 126 MB on Blackwell).
constexpr uint64_t kBufferBytes = uint64_t{1} << 30;

constexpr std::string_view kKindNames[] = {"compute", "memory"};

tl::unexpected<dynamiccl::Error> Wrong(std::string_view text) {
  return WithHint(MakeError(ErrorKind::kInvalidArgument, "no background load '{}'", text),
                  "compute:SHARE with at most 0.75, or memory:SHARE with at most 1; for example memory:0.5");
}

}  // namespace

Result<LoadRequest> ParseLoad(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return Wrong(text);
  const auto kind = std::find(std::begin(kKindNames), std::end(kKindNames), text.substr(0, colon));
  if (kind == std::end(kKindNames)) return Wrong(text);
  LoadRequest request{.kind = static_cast<LoadKind>(kind - std::begin(kKindNames))};
  const char* const end = text.data() + text.size();
  const auto [stopped, code] = std::from_chars(text.data() + colon + 1, end, request.share);
  const double most = request.kind == LoadKind::kCompute ? 0.75 : 1;
  if (code != std::errc() || stopped != end || !(request.share > 0 && request.share <= most))
    return Wrong(text);
  return request;
}

LoadPlan PlanLoad(const LoadRequest& request, int multiprocessors, int shared_bytes_per_block) {
  const int most = std::max(multiprocessors - (multiprocessors + 3) / 4, 1);
  const bool computes = request.kind == LoadKind::kCompute;
  const auto wanted = static_cast<int>(std::lround(request.share * multiprocessors));
  LoadPlan plan{.grid = {.threads = kThreads}, .duty = {kPeriodNs, kPeriodNs, kMaxNs}};
  plan.grid.blocks = static_cast<unsigned>(computes ? std::clamp(wanted, 1, most) : most);
  // Bytes of shared memory that the kernel uses itself. The block takes the rest of the multiprocessor's
  // shared memory, so that no second block fits.
  constexpr int kOwnSharedBytes = 1024;
  plan.grid.shared_bytes = static_cast<unsigned>(std::max(shared_bytes_per_block - kOwnSharedBytes, 0));
  if (computes) return plan;
  plan.duty.busy_ns = static_cast<uint64_t>(std::llround(request.share * static_cast<double>(kPeriodNs)));
  plan.words = kBufferBytes / 16;
  return plan;
}

Result<std::unique_ptr<BackgroundLoad>> BackgroundLoad::Prepare(const LoadRequest& request, int local_rank) {
  const std::string kernels = FindKernelFile();
  if (kernels.empty()) {
    return WithHint(
        MakeError(ErrorKind::kUnsupported, "a background load needs kernels, and this build has none"),
        "build with nvcc on PATH (tools/setup/fetch_nvcc.sh gets one)");
  }
  std::unique_ptr<BackgroundLoad> load(new BackgroundLoad);
  DYNAMICCL_TRY(load->runtime_, Runtime::Open());
  const Runtime& runtime = *load->runtime_;
  int devices = 0, multiprocessors = 0, shared_bytes = 0;
  DYNAMICCL_CHECK_OK(runtime.Check(runtime.GetDeviceCount(&devices), "cudaGetDeviceCount"));
  if (local_rank >= devices) return nullptr;
  const auto read = [&](int* value, int attribute) {
    return runtime.Check(runtime.DeviceGetAttribute(value, attribute, local_rank), "cudaDeviceGetAttribute");
  };
  DYNAMICCL_CHECK_OK(read(&multiprocessors, kMultiprocessorCount));
  DYNAMICCL_CHECK_OK(read(&shared_bytes, kMaxSharedMemoryPerBlockOptin));
  load->plan_ = PlanLoad(request, multiprocessors, shared_bytes);
  DYNAMICCL_CHECK_OK(load->Allocate());
  DYNAMICCL_TRY(load->module_, DeviceModule::Load(kernels));
  return load;
}

Status BackgroundLoad::Allocate() {
  void* memory = nullptr;
  DYNAMICCL_CHECK_OK(runtime_->Check(runtime_->Malloc(&memory, sizeof(LoadTally)), "cudaMalloc"));
  tally_ = static_cast<LoadTally*>(memory);
  DYNAMICCL_CHECK_OK(
      runtime_->Check(runtime_->HostAlloc(&memory, sizeof(unsigned), kHostAllocMapped), "cudaHostAlloc"));
  stop_ = static_cast<volatile unsigned*>(memory);
  // The load has its own stream, which does not wait for the null stream.
  DYNAMICCL_CHECK_OK(runtime_->Check(runtime_->StreamCreateWithFlags(&stream_, kStreamNonBlocking),
                                     "cudaStreamCreateWithFlags"));
  if (plan_.words == 0) return {};
  DYNAMICCL_CHECK_OK(runtime_->Check(runtime_->Malloc(&buffer_, plan_.words * 16), "cudaMalloc"));
  return runtime_->Check(runtime_->Memset(buffer_, 0, plan_.words * 16), "cudaMemset");
}

BackgroundLoad::~BackgroundLoad() {
  if (started_ns_) static_cast<void>(Stop());
  if (runtime_ == nullptr) return;
  if (stream_ != nullptr) runtime_->StreamDestroy(stream_);
  if (buffer_ != nullptr) runtime_->Free(buffer_);
  if (tally_ != nullptr) runtime_->Free(tally_);
  if (stop_ != nullptr) runtime_->FreeHost(const_cast<unsigned*>(stop_));
}

Status BackgroundLoad::Start() {
  *stop_ = 0;
  DYNAMICCL_CHECK_OK(runtime_->Check(runtime_->Memset(tally_, 0, sizeof(LoadTally)), "cudaMemset"));
  DYNAMICCL_CHECK_OK(module_->Launch("dynamiccl_background_load", plan_.grid, stream_, plan_.duty, buffer_,
                                     plan_.words, stop_, tally_));
  started_ns_ = MonotonicNanoseconds();
  return {};
}

Result<LoadReport> BackgroundLoad::Stop() {
  *stop_ = 1;
  const int64_t begin = *started_ns_;
  started_ns_.reset();
  DYNAMICCL_CHECK_OK(runtime_->Check(runtime_->StreamSynchronize(stream_), "background load"));
  const int64_t nanoseconds = MonotonicNanoseconds() - begin;
  LoadTally tally;
  DYNAMICCL_CHECK_OK(
      runtime_->Check(runtime_->Memcpy(&tally, tally_, sizeof(tally), kDeviceToHost), "cudaMemcpy"));
  if (tally.started != plan_.grid.blocks) {
    return MakeError(ErrorKind::kUnavailable, "background load: {} of {} blocks ran", tally.started,
                     plan_.grid.blocks);
  }
  if (nanoseconds >= static_cast<int64_t>(plan_.duty.most_ns)) {
    return MakeError(ErrorKind::kTimeout,
                     "background load: it ended by itself after {} s, before the measurement",
                     plan_.duty.most_ns / 1'000'000'000);
  }
  return LoadReport{plan_.grid.blocks, tally.rounds,
                    static_cast<double>(tally.bytes) / static_cast<double>(nanoseconds)};
}

}  // namespace dynamiccl::cuda
