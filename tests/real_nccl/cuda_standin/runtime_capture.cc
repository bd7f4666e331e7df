// SPDX-License-Identifier: Apache-2.0
// Implements the CUDA runtime's functions for stream capture, and for the nodes and objects of the captured
// graph.
#include <utility>
#include <vector>

#include "tests/real_nccl/cuda_standin/capture.h"
#include "tests/real_nccl/cuda_standin/cuda_types.h"
#include "tests/real_nccl/cuda_standin/function_table.h"

namespace cuda_standin {
namespace {

constexpr int kNotCapturing = 0, kBeingCaptured = 1;  // cudaStreamCaptureStatus

// cudaUserObject_t: data of a program that lives as long as a graph. The end of the capture calls `destroy`.
struct UserObject {
  void* data;
  void (*destroy)(void*);
};

struct ThreadCapture {
  bool on = false;
  unsigned long long id = 0;
  std::vector<UserObject> objects;
};

ThreadCapture& ThisCapture() {
  static thread_local ThreadCapture capture;
  return capture;
}

// Returns the handle that stands for every graph, node and user object. The stand-in never reads from it.
void* Token() {
  static int token = 0;
  return &token;
}

int Succeed() {
  return kSuccess;
}

int StreamIsCapturing(Stream, int* status) {
  *status = Capturing() ? kBeingCaptured : kNotCapturing;
  return kSuccess;
}

int CaptureInfo(int* status, unsigned long long* id, void** graph) {
  StreamIsCapturing(nullptr, status);
  if (id != nullptr) *id = ThisCapture().id;
  if (graph != nullptr) *graph = Capturing() ? Token() : nullptr;
  return kSuccess;
}

int StreamGetCaptureInfo2(Stream, int* status, unsigned long long* id, void** graph, void** dependencies,
                          size_t* count) {
  if (dependencies != nullptr) *dependencies = nullptr;
  if (count != nullptr) *count = 0;
  return CaptureInfo(status, id, graph);
}

int StreamGetCaptureInfo3(Stream stream, int* status, unsigned long long* id, void** graph,
                          void** dependencies, void** edges, size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  return StreamGetCaptureInfo2(stream, status, id, graph, dependencies, count);
}

int UserObjectCreate(UserObject** object, void* data, void (*destroy)(void*)) {
  ThisCapture().objects.push_back({data, destroy});
  *object = static_cast<UserObject*>(Token());
  return kSuccess;
}

int AddNode(void** node) {
  if (node != nullptr) *node = Token();
  return kSuccess;
}

}  // namespace

bool Capturing() {
  return ThisCapture().on;
}

void SetCapturing(bool on) {
  ThreadCapture& capture = ThisCapture();
  capture.on = on;
  if (on) {
    ++capture.id;
    return;
  }
  const auto objects = std::exchange(capture.objects, {});
  for (const UserObject& object : objects) object.destroy(object.data);
}

std::span<const NamedFunction> RuntimeCaptureFunctions() {
  static const NamedFunction kTable[] = {
      CUDA_STANDIN_FUNCTION(cudaStreamIsCapturing, StreamIsCapturing),
      CUDA_STANDIN_FUNCTION(cudaStreamGetCaptureInfo_v2, StreamGetCaptureInfo2),
      CUDA_STANDIN_FUNCTION(cudaStreamGetCaptureInfo_v3, StreamGetCaptureInfo3),
      // NCCL built with CUDA 13 calls version 3 by the plain name. NCCL built with CUDA 12 never calls the
      // plain name.
      CUDA_STANDIN_FUNCTION(cudaStreamGetCaptureInfo, StreamGetCaptureInfo3),
      CUDA_STANDIN_FUNCTION(cudaThreadExchangeStreamCaptureMode, Succeed),
      CUDA_STANDIN_FUNCTION(cudaStreamUpdateCaptureDependencies, Succeed),
      CUDA_STANDIN_FUNCTION(cudaStreamUpdateCaptureDependencies_v2, Succeed),
      CUDA_STANDIN_FUNCTION(cudaUserObjectCreate, UserObjectCreate),
      CUDA_STANDIN_FUNCTION(cudaUserObjectRelease, Succeed),
      CUDA_STANDIN_FUNCTION(cudaGraphRetainUserObject, Succeed),
      CUDA_STANDIN_FUNCTION(cudaGraphAddEmptyNode, AddNode),
      CUDA_STANDIN_FUNCTION(cudaGraphAddHostNode, AddNode),
      CUDA_STANDIN_FUNCTION(cudaGraphAddEventRecordNode, AddNode),
      CUDA_STANDIN_FUNCTION(cudaGraphAddEventWaitNode, AddNode),
      CUDA_STANDIN_FUNCTION(cudaGraphAddDependencies, Succeed),
      CUDA_STANDIN_FUNCTION(cudaGraphAddDependencies_v2, Succeed),
  };
  return kTable;
}

}  // namespace cuda_standin

// DynamICCL calls this function of the driver (plugin/border/cuda_driver.cc).
extern "C" __attribute__((visibility("default"))) int cuStreamIsCapturing(void*, int* status) {
  return cuda_standin::StreamIsCapturing(nullptr, status);
}
