// SPDX-License-Identifier: Apache-2.0
// One communicator of this process, in parts that differ by who writes them and when. The registry
// (communicator_registry.h) and the calls that are under way own it together; sessions of the tuner and of
// control threads hold it by shared pointer or by the pointers in SwitchingState.
//
// Three kinds of threads see it:
//   the making thread calls ncclCommInitRank or its like and waits in NCCL until the communicator exists;
//   the issuing threads issue its calls: NCCL's contract orders these calls, so that plain members that only
//     they touch need no lock, even if the program issues from several threads in turn;
//   control threads are this object's own (switch_thread.h, control_server.h), and read only what is marked.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "plugin/runtime/call_ledger.h"
#include "plugin/runtime/calls_inside.h"
#include "plugin/runtime/expected_size_class.h"
#include "plugin/runtime/switchable_tables.h"
#include "plugin/times/times_report.h"
#include "src/collective/collective.h"
#include "src/collective/communicator_info.h"
#include "src/collective/role.h"
#include "src/decision/control_messages.h"
#include "src/decision/guard/call_feed.h"
#include "src/policy/structure_inference.h"

namespace dynamiccl {

class ConfigCopy;

// What the tuner has to know of the group that is being issued, in values equal on all ranks.
struct GroupFacts {
  // Number of the group's call on the communicator, counted from 0 (call_stream.h).
  uint64_t call_number = 0;
  // AddOperands over the group's calls of each collective: data types and operators.
  std::array<uint32_t, kTunableCollectives> operands{};
  // The group ends with ncclGroupSimulateEnd: NCCL asks its tuner, but launches nothing.
  bool simulated = false;
  // The program chose the configuration of one of the group's calls itself (ncclAllReduceConfig and its
  // like).
  bool configured = false;
};

// How many children a rank has made of each kind. Ranks that make a child together count alike, so that its
// number names it on all of them. Ranks that a shrink leaves out take no part in it, so each list of those is
// counted by itself.
struct ChildCounts {
  uint64_t splits = 0;
  uint64_t grows = 0;
  std::map<uint32_t, uint64_t> shrinks;  // by the digest of the ranks left out
};

// Which communicator this is, and which rank of it. The making thread writes it before the library is called.
// Two parts come later, before anybody else reads them: the number of nodes by the tuner's init, and rank and
// size of a child, at the latest by its first call. Any thread reads.
struct CommunicatorIdentity {
  CommunicatorInfo info;
  // Of its Communicator record in the trace; the issuing thread writes it together with that record.
  uint32_t number = 0;
  // Equal on all ranks, and on no other communicator of the job.
  ControlToken token{};
  // Where its ranks meet; invalid: they cannot.
  MeetingPoint meeting;
  // Unique to this rank among those that attest.
  int member = 0;
  // Rank of this process in its job, as far as it is known: stands for %r in paths.
  int process_rank = 0;
  // All its ranks are threads or devices of this process (ncclCommInitAll), so nothing has to be attested.
  bool within_process = false;
};

// What the program's ncclConfig_t and the rules made of it. The making thread writes it before the library is
// called; it is read only from then on.
struct CommunicatorConfig {
  // False: NCCL works for it on threads of its own, and asks its tuner there.
  bool blocking = true;
  // Its CTA policy has ZERO: AllGather may run on the copy engine, which no tuner is asked about.
  bool zero_ctas = false;
  // "minCTAs=2 maxCTAs=8 nvlsCTAs=4": those that the program set itself. Channels are NCCL's then.
  std::string pinned_ctas;
  // "minCTAs=8 maxCTAs=16": those that rules set, as all ranks agreed before NCCL's init.
  std::string set_ctas;
  // The program's own configuration, where rules set bounds; a communicator that grows from this one gets it.
  std::shared_ptr<const ConfigCopy> asked_for;
};

// What mode adaptive adds. The tuner's init writes it, before the program has the handle; the registry
// empties it once no call can be inside any more. All three are null in other modes.
struct SwitchingState {
  // Tables by version, and the gate between them. Issuing and control threads share it; it says who does
  // what.
  std::shared_ptr<SwitchableTables> tables;
  // Times that this rank tells its leader. Null where no guard watches the table.
  std::shared_ptr<TimesReport> times;
  // Decided calls for the guard; the issuing thread pushes, the leader's control thread pops. Null but on the
  // rank of the leader's process.
  std::shared_ptr<CallFeed> feed;
};

// What the calls so far left for the next one. Issuing threads only, without a lock, unless a member says
// more.
struct IssuingState {
  // Number of the next call.
  uint64_t next_call = 0;
  // Recognises what the calls are for; null without a policy.
  std::unique_ptr<StructureAgent> structure;
  // The policy that `structure` computes with.
  std::shared_ptr<const Policy> policy;
  // The group under way on a communicator that is not blocking. The issuing thread writes it; after that the
  // library's thread reads it, and the program may not issue the next call before that has ended.
  GroupFacts in_flight;
  ExpectedSizeClass expected_sizes;
  ChildCounts children;
  // Any thread may read the counts.
  CallLedger ledger;
  // False: rank and size of this child are not known yet, and its trace record is not written.
  bool introduced = false;
};

struct Communicator {
  CommunicatorIdentity identity;
  CommunicatorConfig config;
  SwitchingState switching;
  IssuingState issuing;
  // Whether a call is inside; the issuing thread enters and leaves, whoever removes the communicator closes.
  CallsInside calls_inside;
  // It was destroyed or aborted. Set once, by any thread; a pledge that is under way is released then.
  std::atomic<bool> gone{false};
  // A tuner session was begun for it. Set once, by the thread of the tuner's init or of the first call.
  std::atomic<bool> claimed{false};
  // The registry's, under its lock: SeveralThatFit has named this communicator.
  bool not_told_apart = false;
};

// The role that the calls so far predict for the next one. kUnknown where the order of calls and decisions
// does not hold, because the communicator is not blocking, or where no policy recognises anything.
inline Role RecognisedRole(const Communicator& communicator, Collective collective, uint64_t bytes) {
  if (!communicator.config.blocking || !communicator.issuing.structure) return Role::kUnknown;
  return KeyRoleOfNext(communicator.issuing.structure->recognised(), collective, bytes);
}

}  // namespace dynamiccl
