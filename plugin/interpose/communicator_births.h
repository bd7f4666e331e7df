// SPDX-License-Identifier: Apache-2.0
// How communicators come and go: what a program asks for is expected before the library initialises it, so
// that the tuner knows whom its init is about, and gets its handle and its record afterwards.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "plugin/interpose/config_copy.h"
#include "plugin/interpose/reentry_guard.h"
#include "plugin/runtime/process_runtime.h"

namespace dynamiccl {

// What a communicator is made from: a unique id, or another communicator.
struct InitOf {
  const ncclUniqueId& id;
  int n_ranks;
  int rank;
};
struct SplitOf {
  ncclComm_t parent;
  int colour;
};
struct ShrinkOf {
  ncclComm_t parent;
  std::span<const int> excluded;
};
struct GrowOf {
  ncclComm_t parent;       // null on a rank that comes new
  const ncclUniqueId* id;  // null on all ranks of the parent but one
  int n_ranks;
  int rank;  // of a new rank
};

// A function that makes a communicator, around the library's; its handle is known once the library returns,
// or, in a group, at the group's end.
class CommunicatorBirth {
 public:
  CommunicatorBirth(const InitOf& init, const ncclConfig_t* config) noexcept;
  CommunicatorBirth(const SplitOf& split, const ncclConfig_t* config) noexcept;
  CommunicatorBirth(const ShrinkOf& shrink, const ncclConfig_t* config) noexcept;
  CommunicatorBirth(const GrowOf& grow, const ncclConfig_t* config) noexcept;
  // What the library is to initialise it with: as a rule: `given`, the program's. Lives as long as this
  // object.
  ncclConfig_t* Config(ncclConfig_t* given) const;
  ncclResult_t Finish(ncclResult_t result, ncclComm_t* handle) noexcept;

 private:
  // Where rules ask for bounds on its channels, and all ranks agree.
  void SetAgreedCtas(const ncclConfig_t* config);
  void SayThatChildsCtasStay(const ncclConfig_t* config);
  // The parent, when this call is to be noted and the parent is known; else null.
  Communicator* NotedParent(ncclComm_t parent);
  void ExpectGrown(const GrowOf& grow, const ncclConfig_t* config);
  void Expect(std::shared_ptr<Communicator> communicator, const ncclConfig_t* config);

  ReentryGuard guard_;
  ProcessRuntime* runtime_ = nullptr;
  std::shared_ptr<Communicator> communicator_;
  std::shared_ptr<const ConfigCopy> config_;  // null: the program's
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
// ncclCommGetUniqueId did, for the ranks by which a communicator is to grow.
void GrowIdMade(ncclComm_t parent, ncclUniqueId& id) noexcept;

// Before the library hears of it. Revoked: no call on it will succeed, but children may be made from it.
void CommunicatorRevoked(ncclComm_t handle) noexcept;
void CommunicatorGone(ncclComm_t handle) noexcept;

// At the first call on a communicator whose rank and size were not known when the program got its handle.
void IntroduceLate(ProcessRuntime& runtime, Communicator& communicator, ncclComm_t handle);

// Asked for inside a group: the library initialises it at the group's end and writes its handle then.
struct UnbornCommunicator {
  std::shared_ptr<Communicator> communicator;
  ncclComm_t* handle = nullptr;
};
// The outermost group ended with `result`: empties `unborn`.
void BringToLife(ProcessRuntime& runtime, std::vector<UnbornCommunicator>& unborn, ncclResult_t result);

// The trace shows that this thread is inside the library, which makes the communicator, until the mark is
// taken back. Opens the process's files: a process that never comes back from here has a trace as well.
void MarkBirth(ProcessRuntime& runtime, const Communicator& communicator);

// Of the calling thread; owned by call_stream.cc.
bool InsideGroup();
std::vector<UnbornCommunicator>& UnbornOfThisThread();

}  // namespace dynamiccl
