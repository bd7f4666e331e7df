// SPDX-License-Identifier: Apache-2.0
// How communicators come and go. A communicator that a program asks for is expected before the library
// initialises it, so that the tuner knows what its init is about; it gets its handle and its trace record
// afterwards. There are five ways to make one: by a unique id, all ranks of a process at once, and by split,
// shrink or growth of another.
//
// Everything here runs on the thread that the program calls from, and fails never: where a communicator
// cannot be noted, its calls pass through. Only initialisation blocks, where ranks agree on bounds of its
// channels.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "plugin/interpose/program_config.h"
#include "plugin/interpose/reentry_scope.h"
#include "plugin/runtime/issuing_thread.h"
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

// A function that makes a communicator, around the library's. It lives on the stack of the interposed
// function. The handle is known once the library returns, or, in a group, at the group's end.
class CommunicatorBirth {
 public:
  CommunicatorBirth(const InitOf& init, const ncclConfig_t* config) noexcept;
  CommunicatorBirth(const SplitOf& split, const ncclConfig_t* config) noexcept;
  CommunicatorBirth(const ShrinkOf& shrink, const ncclConfig_t* config) noexcept;
  CommunicatorBirth(const GrowOf& grow, const ncclConfig_t* config) noexcept;
  // What the library is to initialise it with: as a rule `given`, the program's. Lives as long as this
  // object.
  ncclConfig_t* Config(ncclConfig_t* given) const;
  // The library has returned `result`, which is passed through; on success it has written the handle.
  ncclResult_t Finish(ncclResult_t result, ncclComm_t* handle) noexcept;

 private:
  // Adds the bounds on channels that rules ask for, once all ranks have agreed.
  void SetAgreedCtas(const ncclConfig_t* config);
  // Warns once that rules set no bounds of a child that the program configures itself.
  void WarnThatChildsCtasStay(const ncclConfig_t* config);
  // The parent, when this call is to be noted and the parent is known; else null.
  Communicator* NotedParent(ncclComm_t parent);
  void ExpectGrown(const GrowOf& grow, const ncclConfig_t* config);
  // Announces the communicator to the registry, and this object to NCCL as a plugin.
  void Expect(std::shared_ptr<Communicator> communicator, const ncclConfig_t* config);

  ReentryScope scope_;
  ProcessRuntime* runtime_ = nullptr;           // null: only pass through
  std::shared_ptr<Communicator> communicator_;  // null: likewise
  std::shared_ptr<const ConfigCopy> config_;    // null: the program's
};

// ncclCommInitAll: all ranks are this process's. Lives on the stack of the interposed function.
class CommunicatorsOfProcess {
 public:
  explicit CommunicatorsOfProcess(int n_ranks) noexcept;
  ncclResult_t Finish(ncclResult_t result, ncclComm_t* handles) noexcept;

 private:
  ReentryScope scope_;
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

// At the first call on a communicator whose rank and size were not known when the program got its handle:
// asks the library for them, and writes the communicator's trace record. Does nothing while the library does
// not know them either, as long as a non-blocking communicator is being initialised.
void IntroduceLate(ProcessRuntime& runtime, Communicator& communicator, ncclComm_t handle);

// The outermost group ended with `result`: the library has initialised what was asked for inside, or not.
// Empties `unborn`.
void BringToLife(ProcessRuntime& runtime, std::vector<UnbornCommunicator>& unborn, ncclResult_t result);

// Shows in the trace that this thread is inside the library, which makes the communicator, until the mark is
// taken back. Opens the process's files: a process that never comes back from here has a trace as well.
void MarkBirth(ProcessRuntime& runtime, const Communicator& communicator);

}  // namespace dynamiccl
