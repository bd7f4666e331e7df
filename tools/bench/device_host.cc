// SPDX-License-Identifier: Apache-2.0
// Host memory with hostccl's streams and events, which are looked up in the library at run time.
#include <cstdlib>
#include <cstring>

#include "src/nccl_abi/host_stream.h"
#include "tools/bench/device.h"

namespace dynamiccl {
namespace {

// Expands X(name) for each function of host_stream.h, without the prefix "hostccl".
#define DYNAMICCL_HOST_STREAM_FUNCTIONS(X) \
  X(StreamCreate)                          \
  X(StreamDestroy) X(StreamSynchronize) X(EventCreate) X(EventDestroy) X(EventRecord) X(EventTime)

// The resolved functions.
struct HostStreamFunctions {
#define DYNAMICCL_MEMBER(name) decltype(&hostccl##name) name = nullptr;
  DYNAMICCL_HOST_STREAM_FUNCTIONS(DYNAMICCL_MEMBER)
#undef DYNAMICCL_MEMBER
};

// Alignment of buffers in bytes: a page. It suffices for every vector instruction, and a registered buffer
// would have the same alignment.
constexpr size_t kAlignment = 4096;

// A Device in host memory. It owns the stream, the events and all buffers.
class HostDevice final : public Device {
 public:
  HostDevice(const NcclLibrary& library, const HostStreamFunctions& functions)
      : library_(library), functions_(functions) {}

  ~HostDevice() override {
    for (const hostcclEvent_t event : events_) functions_.EventDestroy(event);
    if (stream_ != nullptr) functions_.StreamDestroy(stream_);
    for (std::byte* buffer : buffers_) std::free(buffer);
  }

  Status Open() { return library_.Check(functions_.StreamCreate(&stream_), "hostcclStreamCreate"); }

  Result<std::byte*> Allocate(size_t bytes) override {
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    auto* buffer =
        static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded));
    if (buffer == nullptr)
      return MakeError(ErrorKind::kUnavailable, "no memory for a buffer of {} bytes", bytes);
    buffers_.push_back(buffer);
    return buffer;
  }

  Status CopyIn(std::byte* device, const std::byte* host, size_t bytes) override {
    std::memcpy(device, host, bytes);
    return {};
  }
  Status CopyOut(std::byte* host, const std::byte* device, size_t bytes) override {
    std::memcpy(host, device, bytes);
    return {};
  }
  cudaStream_t stream() const override { return stream_; }
  Status Synchronize() override {
    return library_.Check(functions_.StreamSynchronize(stream_), "hostcclStreamSynchronize");
  }

  void ClearMarks() override { marks_ = 0; }

  Status Mark() override {
    if (marks_ == events_.size()) {
      hostcclEvent_t event = nullptr;
      DYNAMICCL_CHECK_OK(library_.Check(functions_.EventCreate(&event), "hostcclEventCreate"));
      events_.push_back(event);
    }
    return library_.Check(functions_.EventRecord(events_[marks_++], stream_), "hostcclEventRecord");
  }

  Result<std::vector<double>> Intervals() override {
    std::vector<double> intervals;
    int64_t previous = 0;
    for (size_t i = 0; i < marks_; ++i) {
      int64_t now = 0;
      DYNAMICCL_CHECK_OK(library_.Check(functions_.EventTime(events_[i], &now), "hostcclEventTime"));
      if (i > 0) intervals.push_back(static_cast<double>(now - previous) * 1e-3);
      previous = now;
    }
    return intervals;
  }

 private:
  const NcclLibrary& library_;
  HostStreamFunctions functions_;
  cudaStream_t stream_ = nullptr;
  std::vector<std::byte*> buffers_;
  std::vector<hostcclEvent_t> events_;
  size_t marks_ = 0;
};

}  // namespace

Result<std::unique_ptr<Device>> OpenHostDevice(const NcclLibrary& library, bool null_stream) {
  HostStreamFunctions functions;
#define DYNAMICCL_RESOLVE(name)                                                                  \
  functions.name = reinterpret_cast<decltype(functions.name)>(library.Symbol("hostccl" #name));  \
  if (functions.name == nullptr) {                                                               \
    return MakeError(ErrorKind::kUnsupported, "{} has no hostccl" #name, library.Description()); \
  }
  DYNAMICCL_HOST_STREAM_FUNCTIONS(DYNAMICCL_RESOLVE)
#undef DYNAMICCL_RESOLVE
  auto device = std::make_unique<HostDevice>(library, functions);
  if (!null_stream) DYNAMICCL_CHECK_OK(device->Open());
  return device;
}

}  // namespace dynamiccl
