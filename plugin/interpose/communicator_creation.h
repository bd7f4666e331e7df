// SPDX-License-Identifier: Apache-2.0
// Follows how communicators are made and ended. A communicator that a program asks for is announced to the
// registry before the library initialises it. So the tuner can match its init to the communicator. The
// communicator gets its handle and its trace record afterwards. There are five ways to make one: from a
// unique id, for all ranks of a process at once, and by split, shrink or growth of another communicator.
//
// Everything here runs on the program's thread and never fails: if a communicator cannot be noted, its calls
// pass through. Only initialisation may block, while the ranks agree on the bounds of the communicator's
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

// The origin of a communicator: a unique id, or another communicator.
struct InitOrigin {
  const ncclUniqueId& id;
  int n_ranks;
  int rank;
};
struct SplitOrigin {
  ncclComm_t parent;
  int colour;
};
struct ShrinkOrigin {
  ncclComm_t parent;
  std::span<const int> excluded;
};
struct GrowOrigin {
  ncclComm_t parent;       // null on a new rank
  const ncclUniqueId* id;  // null on all ranks of the parent but one
  int n_ranks;
  int rank;  // rank of a new rank
};

// Surrounds a library function that makes a communicator. It lives on the stack of the interposed function.
// The handle is known once the library returns or, in a group, at the group's end.
class CommunicatorCreation {
 public:
  CommunicatorCreation(const InitOrigin& init, const ncclConfig_t* config) noexcept;
  CommunicatorCreation(const SplitOrigin& split, const ncclConfig_t* config) noexcept;
  CommunicatorCreation(const ShrinkOrigin& shrink, const ncclConfig_t* config) noexcept;
  CommunicatorCreation(const GrowOrigin& grow, const ncclConfig_t* config) noexcept;
  // Returns the config to pass to the library, which is mostly `given`. With bounds on which the ranks
  // agreed, it is a copy with these bounds. For a grown communicator it is the config that the program gave
  // for its parent. The result lives as long as this object.
  ncclConfig_t* Config(ncclConfig_t* given) const;
  // Call this when the library has returned `result`, and the handle on success. Returns `result`.
  ncclResult_t Finish(ncclResult_t result, ncclComm_t* handle) noexcept;

 private:
  // Adds the bounds on channels that rules ask for, after all ranks have agreed.
  void SetAgreedCtas(const ncclConfig_t* config);
  // Warns once if rules cannot set bounds of a child because the program configures the child itself.
  void WarnThatChildsCtasStay(const ncclConfig_t* config);
  // Returns the parent if this call is to be noted and the parent is known; else null.
  Communicator* NotedParent(ncclComm_t parent);
  void ExpectGrown(const GrowOrigin& grow, const ncclConfig_t* config);
  // Announces the communicator to the registry, and offers this object to NCCL as a plugin.
  void Expect(std::shared_ptr<Communicator> communicator, const ncclConfig_t* config);

  ReentryScope scope_;
  ProcessRuntime* runtime_ = nullptr;           // null: only pass through
  std::shared_ptr<Communicator> communicator_;  // null: only pass through
  std::shared_ptr<const ConfigCopy> config_;    // null: the program's
};

// Surrounds ncclCommInitAll, whose ranks are all in this process. Lives on the stack of the interposed
// function.
class InitAllCreation {
 public:
  explicit InitAllCreation(int n_ranks) noexcept;
  ncclResult_t Finish(ncclResult_t result, ncclComm_t* handles) noexcept;

 private:
  ReentryScope scope_;
  ProcessRuntime* runtime_ = nullptr;
  std::vector<std::shared_ptr<Communicator>> communicators_;
};

// Called after ncclGetUniqueId returned this id.
void UniqueIdMade(ncclUniqueId& id) noexcept;
// Called after ncclCommGetUniqueId returned this id, which is for ranks that join a communicator.
void GrowIdMade(ncclComm_t parent, ncclUniqueId& id) noexcept;

// Both functions are called before the library's own function. After a communicator was revoked, no further
// call on it succeeds, but children may be made from it.
void CommunicatorRevoked(ncclComm_t handle) noexcept;
void CommunicatorGone(ncclComm_t handle) noexcept;

// Runs at the first call on a communicator whose rank and size were unknown when the program got its handle.
// It asks the library for them and writes the communicator's trace record. While a non-blocking communicator
// is still being initialised, the library does not know them either, and this function does nothing.
void CompleteIdentity(ProcessRuntime& runtime, Communicator& communicator, ncclComm_t handle);

// Runs when the outermost group has ended with `result`: introduces the communicators that the library has
// initialised in it. Empties `pending_communicators`.
void RegisterPendingCommunicators(ProcessRuntime& runtime,
                                  std::vector<PendingCommunicator>& pending_communicators,
                                  ncclResult_t result);

// Shows in the trace that this thread is inside the library to make the communicator, until Recorder::Leave.
// Opens the process's files, so that a process that never returns from the library has a trace, too.
void MarkInit(ProcessRuntime& runtime, const Communicator& communicator);

}  // namespace dynamiccl
