// SPDX-License-Identifier: Apache-2.0
// One communicator of this process. Its data is split by who writes which part and when. The registry
// (communicator_registry.h) and the calls under way own the communicator together. Sessions of the tuner and
// control threads hold it by shared pointer or by the pointers in SwitchingState.
//
// Three kinds of threads use a communicator:
// - The making thread calls ncclCommInitRank or a similar function, and waits in NCCL until the communicator
//   exists.
// - The issuing threads issue its calls. NCCL's contract orders these calls. So plain members that only
//   issuing threads use need no lock, even if the program issues from several threads in turn.
// - Control threads belong to DynamICCL (switch_thread.h, control_server.h). They read only the members
//   marked for them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "plugin/runtime/call_ledger.h"
#include "plugin/runtime/in_flight_calls.h"
#include "plugin/runtime/size_class_predictor.h"
#include "plugin/runtime/switchable_tables.h"
#include "plugin/times/step_stamps.h"
#include "plugin/times/times_report.h"
#include "src/collective/collective.h"
#include "src/collective/communicator_info.h"
#include "src/collective/decision_key.h"
#include "src/collective/role.h"
#include "src/decision/control_messages.h"
#include "src/decision/guard/call_feed.h"
#include "src/policy/structure_inference.h"

namespace dynamiccl {

class ConfigCopy;

// Describes the ncclGroup that is being issued to the tuner. All values are equal on all ranks.
struct GroupFacts {
  // Number of the group's call on the communicator, from 0 (call_stream.h).
  uint64_t call_number = 0;
  // For each collective a digest of the data types and operators of the group's calls (AddOperands).
  std::array<uint32_t, kTunableCollectives> operands{};
  // The group ends with ncclGroupSimulateEnd: NCCL asks its tuner, but launches nothing.
  bool simulated = false;
  // The program itself chose the configuration of one of the group's calls (ncclAllReduceConfig or a similar
  // function).
  bool configured = false;
};

// Counts the children of each kind that a rank has made. Ranks that make a child together have equal counts,
// so the count names the child on all of them. Ranks that a shrink excludes do not take part in it, so
// shrinks are counted for each list of excluded ranks.
struct ChildCounts {
  uint64_t splits = 0;
  uint64_t grows = 0;
  std::map<uint32_t, uint64_t> shrinks;  // by the digest of the excluded ranks
};

// Identifies the communicator and this rank in it. The making thread writes it before the library is called.
// Two parts are written later, but before anyone reads them: the tuner's init writes the number of nodes, and
// rank and size of a child are known at its first call at the latest. Any thread reads.
struct CommunicatorIdentity {
  CommunicatorInfo info;
  // Number of its Communicator record in the trace; the issuing thread writes the number and the record
  // together.
  uint32_t number = 0;
  // Equal on all ranks, and on no other communicator of the job.
  ControlToken token{};
  // The place where the communicator's ranks meet; invalid if they cannot meet.
  RendezvousPoint rendezvous;
  // A number unique to this rank among the attesting ranks.
  int member = 0;
  // Rank of this process in its job, as far as it is known. Replaces %r in paths.
  int process_rank = 0;
  // All ranks are threads or devices of this process (ncclCommInitAll), so no attestation is needed.
  bool within_process = false;
};

// The configuration that the program's ncclConfig_t and the rules give. The making thread writes it before
// the library is called; afterwards it is only read.
struct CommunicatorConfig {
  // False: NCCL works for the communicator on its own threads, and asks its tuner there.
  bool blocking = true;
  // The CTA policy includes ZERO: AllGather may run on the copy engine, for which NCCL does not ask a tuner.
  bool zero_ctas = false;
  // The bounds that the program itself set, for example "minCTAs=2 maxCTAs=8 nvlsCTAs=4". NCCL then chooses
  // the channels.
  std::string pinned_ctas;
  // The bounds that rules set, for example "minCTAs=8 maxCTAs=16". All ranks agreed on them before NCCL's
  // init.
  std::string set_ctas;
  // The program's own configuration, if rules set bounds. A communicator that grows from this one gets it.
  std::shared_ptr<const ConfigCopy> asked_for;
};

// The state for mode adaptive; all three pointers are null in other modes. The tuner's init writes it before
// the program has the handle. The registry empties it when no call can be inside any more.
struct SwitchingState {
  // The tables by version, and the gate between them. Issuing and control threads share the object;
  // SwitchableTables documents which thread may do what.
  std::shared_ptr<SwitchableTables> tables;
  // Times that this rank reports to its leader. Null if no guard watches the table.
  std::shared_ptr<TimesReport> times;
  // Decided calls for the guard: the issuing thread pushes, the leader's control thread pops. Null except on
  // the rank in the leader's process.
  std::shared_ptr<CallFeed> feed;
};

// The state that calls leave for later calls. Used only by issuing threads, without a lock, unless a member
// says otherwise.
struct IssuingState {
  // Number of the next call.
  uint64_t next_call = 0;
  // Stamps the first calls of steps on the leader's rank.
  StepStamps stamps;
  // The agent that recognises what the calls are for; null without a policy.
  std::unique_ptr<StructureAgent> structure;
  // The policy from which `structure` was made.
  std::shared_ptr<const Policy> policy;
  // The group under way on a non-blocking communicator. The issuing thread writes it, then the library's
  // thread reads it. The program may not issue the next call before the group has ended.
  GroupFacts in_flight;
  SizeClassPredictor size_classes;
  ChildCounts children;
  // Any thread may read the counts.
  CallLedger ledger;
  // False: rank and size of this child are not known yet, and its trace record is not written yet.
  bool introduced = false;
};

// One communicator of this process; the top of this file has its owners and threads.
struct Communicator {
  CommunicatorIdentity identity;
  CommunicatorConfig config;
  SwitchingState switching;
  IssuingState issuing;
  // Tells whether a call is inside. The issuing thread enters and leaves; the thread that removes the
  // communicator closes it.
  InFlightCalls in_flight_calls;
  // The communicator was destroyed or aborted. Set once, by any thread; this releases a pending pledge.
  std::atomic<bool> gone{false};
  // A tuner session exists for this communicator. Set once, by the thread of the tuner's init or of the first
  // call.
  std::atomic<bool> claimed{false};
  // Used by the registry, under the registry's lock. True: AmbiguousCandidates has already returned this
  // communicator.
  bool not_told_apart = false;
};

// Returns what is predicted about the next call. Null if the communicator is non-blocking, because decisions
// then do not follow the order of calls, or if there is no policy.
inline const RecognisedStructure* RecognisedOn(const Communicator& communicator) {
  if (!communicator.config.blocking || !communicator.issuing.structure) return nullptr;
  return &communicator.issuing.structure->recognised();
}

// Returns the predicted role of the next call; kUnknown where nothing is predicted.
inline Role RecognisedRole(const Communicator& communicator, Collective collective, uint64_t bytes) {
  const RecognisedStructure* const recognised = RecognisedOn(communicator);
  return recognised == nullptr ? Role::kUnknown : KeyRoleOfNext(*recognised, collective, bytes);
}

// Fills in the role, phase and stage of the call that `key` describes.
inline void Recognise(const RecognisedStructure& recognised, DecisionKey& key) {
  key.role = KeyRoleOfNext(recognised, key.collective, key.bytes);
  key.phase = recognised.phase;
  key.stage = recognised.stage;
}

}  // namespace dynamiccl
