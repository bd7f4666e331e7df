// SPDX-License-Identifier: Apache-2.0
// How communicators come and go: what a program asks for is expected before the library initialises it, so
// that the tuner knows whom its init is about, and gets its handle and its record afterwards.
#pragma once

#include <memory>
#include <vector>

#include "plugin/interpose/reentry_guard.h"
#include "plugin/runtime/process_runtime.h"

namespace dynamiccl {

// A function that makes a communicator, around the library's; its handle is known once the library returns,
// or, in a group, at the group's end.
class CommunicatorBirth {
 public:
  CommunicatorBirth(const ncclUniqueId& id, int n_ranks, int rank, const ncclConfig_t* config) noexcept;
  CommunicatorBirth(ncclComm_t parent, int colour, const ncclConfig_t* config) noexcept;
  ncclResult_t Finish(ncclResult_t result, ncclComm_t* handle) noexcept;

 private:
  void Expect(std::shared_ptr<Communicator> communicator, const ncclConfig_t* config);

  ReentryGuard guard_;
  ProcessRuntime* runtime_ = nullptr;
  std::shared_ptr<Communicator> communicator_;
};

// ncclCommInitAll: all ranks are this process's.
class CommunicatorsOfProcess {
 public:
  explicit CommunicatorsOfProcess(int n_ranks) noexcept;
  ncclResult_t Finish(ncclResult_t result, ncclComm_t* handles) noexcept;

 private:
  ReentryGuard guard_;
  ProcessRuntime* runtime_ = nullptr;
  std::vector<std::shared_ptr<Communicator>> communicators_;
};

// ncclGetUniqueId returned this id.
void UniqueIdMade(ncclUniqueId& id) noexcept;

void CommunicatorGone(ncclComm_t handle) noexcept;

// Asked for inside a group: the library initialises it at the group's end and writes its handle then.
struct UnbornCommunicator {
  std::shared_ptr<Communicator> communicator;
  ncclComm_t* handle = nullptr;
};
// The outermost group ended with `result`: empties `unborn`.
void BringToLife(ProcessRuntime& runtime, std::vector<UnbornCommunicator>& unborn, ncclResult_t result);

// Of the calling thread; owned by call_stream.cc.
bool InsideGroup();
std::vector<UnbornCommunicator>& UnbornOfThisThread();

}  // namespace dynamiccl
