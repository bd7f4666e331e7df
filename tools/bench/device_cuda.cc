// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime through dlopen: the few functions that a benchmark needs, with CUDA's names and numbers.
#include <dlfcn.h>

#include "src/base/dynamic_library.h"
#include "tools/bench/device.h"

namespace dynamiccl {
namespace {

using CudaError = int;  // 0 is success
using CudaEvent = struct CUevent_st*;
constexpr int kHostToDevice = 1;
constexpr int kDeviceToHost = 2;

// X(name, parameters)
#define DYNAMICCL_CUDA_FUNCTIONS(X)            \
  X(SetDevice, (int))                          \
  X(Malloc, (void**, size_t))                  \
  X(Free, (void*))                             \
  X(Memcpy, (void*, const void*, size_t, int)) \
  X(StreamCreate, (cudaStream_t*))             \
  X(StreamDestroy, (cudaStream_t))             \
  X(StreamSynchronize, (cudaStream_t))         \
  X(EventCreate, (CudaEvent*))                 \
  X(EventDestroy, (CudaEvent))                 \
  X(EventRecord, (CudaEvent, cudaStream_t))    \
  X(EventElapsedTime, (float*, CudaEvent, CudaEvent))

struct CudaFunctions {
#define DYNAMICCL_MEMBER(name, parameters) CudaError(*name) parameters = nullptr;
  DYNAMICCL_CUDA_FUNCTIONS(DYNAMICCL_MEMBER)
#undef DYNAMICCL_MEMBER
  const char* (*GetErrorString)(CudaError) = nullptr;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(DynamicLibrary library, const CudaFunctions& functions)
      : library_(std::move(library)), functions_(functions) {}

  ~CudaDevice() override {
    for (const CudaEvent event : events_) functions_.EventDestroy(event);
    if (stream_ != nullptr) functions_.StreamDestroy(stream_);
    for (void* buffer : buffers_) functions_.Free(buffer);
  }

  Status Open(int index, bool null_stream) {
    DYNAMICCL_CHECK_OK(Check(functions_.SetDevice(index), "cudaSetDevice"));
    if (null_stream) return {};
    return Check(functions_.StreamCreate(&stream_), "cudaStreamCreate");
  }

  Result<std::byte*> Allocate(size_t bytes) override {
    void* buffer = nullptr;
    DYNAMICCL_CHECK_OK(Check(functions_.Malloc(&buffer, bytes == 0 ? 1 : bytes), "cudaMalloc"));
    buffers_.push_back(buffer);
    return static_cast<std::byte*>(buffer);
  }

  Status CopyIn(std::byte* device, const std::byte* host, size_t bytes) override {
    return Check(functions_.Memcpy(device, host, bytes, kHostToDevice), "cudaMemcpy");
  }
  Status CopyOut(std::byte* host, const std::byte* device, size_t bytes) override {
    return Check(functions_.Memcpy(host, device, bytes, kDeviceToHost), "cudaMemcpy");
  }
  cudaStream_t stream() const override { return stream_; }
  Status Synchronize() override {
    return Check(functions_.StreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  void ClearMarks() override { marks_ = 0; }

  Status Mark() override {
    if (marks_ == events_.size()) {
      CudaEvent event = nullptr;
      DYNAMICCL_CHECK_OK(Check(functions_.EventCreate(&event), "cudaEventCreate"));
      events_.push_back(event);
    }
    return Check(functions_.EventRecord(events_[marks_++], stream_), "cudaEventRecord");
  }

  Result<std::vector<double>> Intervals() override {
    std::vector<double> intervals;
    for (size_t i = 1; i < marks_; ++i) {
      float milliseconds = 0;
      DYNAMICCL_CHECK_OK(Check(functions_.EventElapsedTime(&milliseconds, events_[i - 1], events_[i]),
                               "cudaEventElapsedTime"));
      intervals.push_back(static_cast<double>(milliseconds) * 1e3);
    }
    return intervals;
  }

 private:
  Status Check(CudaError error, const char* call) const {
    if (error == 0) return {};
    return MakeError(ErrorKind::kUnavailable, "{}: {}", call, functions_.GetErrorString(error));
  }

  DynamicLibrary library_;
  CudaFunctions functions_;
  cudaStream_t stream_ = nullptr;
  std::vector<void*> buffers_;
  std::vector<CudaEvent> events_;
  size_t marks_ = 0;
};

Result<DynamicLibrary> OpenCudaRuntime() {
  for (const char* name : {"libcudart.so", "libcudart.so.13", "libcudart.so.12"}) {
    auto library = DynamicLibrary::Open(name, RTLD_NOW | RTLD_LOCAL);
    if (library) return library;
  }
  return WithHint(MakeError(ErrorKind::kUnavailable, "libcudart.so, .13 and .12 were not found"),
                  "put the CUDA runtime's folder in LD_LIBRARY_PATH, or use hostccl (--hostccl)");
}

}  // namespace

Result<std::unique_ptr<Device>> OpenCudaDevice(int index, bool null_stream) {
  DYNAMICCL_TRY(DynamicLibrary library, OpenCudaRuntime());
  CudaFunctions functions;
#define DYNAMICCL_RESOLVE(name, parameters) \
  functions.name = reinterpret_cast<decltype(functions.name)>(library.Symbol("cuda" #name));
  DYNAMICCL_CUDA_FUNCTIONS(DYNAMICCL_RESOLVE)
#undef DYNAMICCL_RESOLVE
  functions.GetErrorString =
      reinterpret_cast<decltype(functions.GetErrorString)>(library.Symbol("cudaGetErrorString"));
  if (functions.SetDevice == nullptr || functions.EventElapsedTime == nullptr ||
      functions.GetErrorString == nullptr) {
    return MakeError(ErrorKind::kUnsupported,
                     "the CUDA runtime lacks functions that every release since 10 has");
  }
  auto device = std::make_unique<CudaDevice>(std::move(library), functions);
  DYNAMICCL_CHECK_OK(device->Open(index, null_stream));
  return device;
}

}  // namespace dynamiccl
