// SPDX-License-Identifier: Apache-2.0
#include "plugin/interpose/events_of_process.h"

#include <atomic>
#include <cmath>
#include <memory>

#include "plugin/border/cuda_driver.h"
#include "plugin/border/no_throw.h"
#include "plugin/border/real_nccl.h"
#include "src/nccl_abi/host_stream.h"

namespace dynamiccl {
namespace {

// Values from cuda.h: the results, and the flag of an event that records a time.
constexpr int kSuccess = 0;
constexpr int kNotReady = 600;
constexpr unsigned kTimedEvent = 0;

template <typename Function>
bool Look(void* (*find)(const char*), const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(find(name));
  return function != nullptr;
}

struct DriverFunctions {
  int (*create)(void** event, unsigned flags) = nullptr;
  int (*destroy)(void* event) = nullptr;
  int (*record)(void* event, cudaStream_t stream) = nullptr;
  int (*query)(void* event) = nullptr;
  int (*elapsed)(float* milliseconds, void* earlier, void* later) = nullptr;
  RelaxedCapture::ExchangeMode exchange_mode = nullptr;

  bool FindAll() {
    return Look(FindDriverFunction, "cuEventCreate", create) &&
           Look(FindDriverFunction, "cuEventDestroy_v2", destroy) &&
           Look(FindDriverFunction, "cuEventRecord", record) &&
           Look(FindDriverFunction, "cuEventQuery", query) &&
           Look(FindDriverFunction, "cuEventElapsedTime", elapsed) &&
           Look(FindDriverFunction, "cuThreadExchangeStreamCaptureMode", exchange_mode);
  }
};

class CudaEvents : public StreamEvents {
 public:
  explicit CudaEvents(const DriverFunctions& driver) : driver_(driver) {}
  StreamEvent Make() const override {
    const RelaxedCapture relaxed(driver_.exchange_mode);
    void* event = nullptr;
    return driver_.create(&event, kTimedEvent) == kSuccess ? event : nullptr;
  }
  void Free(StreamEvent event) const override {
    const RelaxedCapture relaxed(driver_.exchange_mode);
    (void)driver_.destroy(event);
  }
  bool Record(StreamEvent event, cudaStream_t stream) const override {
    const RelaxedCapture relaxed(driver_.exchange_mode);
    return driver_.record(event, stream) == kSuccess;
  }
  std::optional<bool> Reached(StreamEvent event) const override {
    const RelaxedCapture relaxed(driver_.exchange_mode);
    const int result = driver_.query(event);
    if (result != kSuccess && result != kNotReady) return std::nullopt;
    return result == kSuccess;
  }
  std::optional<int64_t> Between(StreamEvent earlier, StreamEvent later) const override {
    const RelaxedCapture relaxed(driver_.exchange_mode);
    float milliseconds = 0;
    if (driver_.elapsed(&milliseconds, earlier, later) != kSuccess) return std::nullopt;
    return std::llround(1e6 * static_cast<double>(milliseconds));
  }

 private:
  const DriverFunctions driver_;
};

struct HostFunctions {
  decltype(&hostcclEventCreate) create = nullptr;
  decltype(&hostcclEventDestroy) destroy = nullptr;
  decltype(&hostcclEventRecord) record = nullptr;
  decltype(&hostcclEventQuery) query = nullptr;
  decltype(&hostcclEventTime) time = nullptr;

  bool FindAll() {
    return Look(FindHostcclFunction, "hostcclEventCreate", create) &&
           Look(FindHostcclFunction, "hostcclEventDestroy", destroy) &&
           Look(FindHostcclFunction, "hostcclEventRecord", record) &&
           Look(FindHostcclFunction, "hostcclEventQuery", query) &&
           Look(FindHostcclFunction, "hostcclEventTime", time);
  }
};

class HostEvents : public StreamEvents {
 public:
  explicit HostEvents(const HostFunctions& host) : host_(host) {}
  StreamEvent Make() const override {
    hostcclEvent_t event = nullptr;
    return host_.create(&event) == ncclSuccess ? event : nullptr;
  }
  void Free(StreamEvent event) const override { (void)host_.destroy(Handle(event)); }
  bool Record(StreamEvent event, cudaStream_t stream) const override {
    return host_.record(Handle(event), stream) == ncclSuccess;
  }
  std::optional<bool> Reached(StreamEvent event) const override {
    const ncclResult_t result = host_.query(Handle(event));
    if (result != ncclSuccess && result != ncclInProgress) return std::nullopt;
    return result == ncclSuccess;
  }
  std::optional<int64_t> Between(StreamEvent earlier, StreamEvent later) const override {
    int64_t from = 0, to = 0;
    if (host_.time(Handle(earlier), &from) != ncclSuccess || host_.time(Handle(later), &to) != ncclSuccess)
      return std::nullopt;
    return to - from;
  }

 private:
  static hostcclEvent_t Handle(StreamEvent event) { return static_cast<hostcclEvent_t>(event); }

  const HostFunctions host_;
};

std::unique_ptr<const StreamEvents> Find() {
  if (HostFunctions host; host.FindAll()) return std::make_unique<HostEvents>(host);
  if (DriverFunctions driver; driver.FindAll()) return std::make_unique<CudaEvents>(driver);
  return nullptr;
}

}  // namespace

// Never destroyed, because other threads may still issue calls while the process ends.
const StreamEvents* EventsOfProcess() noexcept {
  static std::atomic<const StreamEvents*> found{nullptr};
  static std::atomic<int> looked{0};
  const StreamEvents* const known = found.load(std::memory_order_acquire);
  if (known != nullptr || looked.load(std::memory_order_relaxed) >= kMaxDriverSearches) return known;
  looked.fetch_add(1, std::memory_order_relaxed);
  NoThrow([&] {
    std::unique_ptr<const StreamEvents> events = Find();
    const StreamEvents* none = nullptr;
    if (events && found.compare_exchange_strong(none, events.get())) (void)events.release();
  });
  return found.load(std::memory_order_acquire);
}

}  // namespace dynamiccl
