// SPDX-License-Identifier: Apache-2.0
// Decides whether all ranks of a communicator may use a table: they may when all of them pledged equal
// values. This is the leader's side; meeting_member.h is a rank's. Protocol and proof obligations:
// docs/agreement.md.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace dynamiccl {

// The values that must be equal on all ranks before any rank uses a table, each with the words for it in
// messages. All are short texts, so that a difference can be shown. `place` and `mask` belong to a situation
// (mask_agreement.h): the call number at which the mask was seen, and the mask.
#define DYNAMICCL_ATTESTED_VALUES(X)                                                                   \
  X(build, "build of libdynamiccl.so")                                                                 \
  X(mode, "mode")                                                                                      \
  X(policy, "policy")                                                                                  \
  X(rules, "override rules")                                                                           \
  X(golden, "golden vectors of the policy")                                                            \
  X(pins, "NCCL settings") /* digest of the NCCL_* variables that steer choices, and the channels that \
                              the program fixed */                                                     \
  X(ctas, "channels that rules set for the communicator")                                              \
  X(library, "NCCL version")                                                                           \
  X(constants, "cost model constants")                                                                 \
  X(calls, "way the calls are seen") /* interposed, interposed non-blocking, or plugin alone */        \
  X(place,                                                                                             \
    "place in the stream of calls") /* of a situation: number of the call that its mask was seen at */ \
  X(mask, "configurations that NCCL offers") /* of a situation */

// One rank's values. A value that does not apply is empty.
struct AttestedValues {
#define DYNAMICCL_ATTESTED_MEMBER(name, sentence) std::string name;
  DYNAMICCL_ATTESTED_VALUES(DYNAMICCL_ATTESTED_MEMBER)
#undef DYNAMICCL_ATTESTED_MEMBER

  friend bool operator==(const AttestedValues&, const AttestedValues&) = default;
};

// Describes the first value that differs, for example "policy: 12ab on rank 0, 99fe on rank 3"; empty when
// all are equal.
std::string DescribeDifference(int rank_a, const AttestedValues& a, int rank_b, const AttestedValues& b);

// The outcome of a meeting.
struct Verdict {
  bool agreed = false;
  bool timed_out = false;  // ranks were missing: no rank waits for them again in this job
  std::string reason;      // why the ranks did not agree; empty when they did

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

// Late meetings about situations at most. A rank that is late for one costs the others a wait of a twentieth
// of the leader's time-out, so all of them together last as long as the one wait for a communicator.
inline constexpr int kMaxLateSituations = 20;

// The leader's side of one meeting, owned by the control server (plugin/runtime), one thread at a time. Pure
// state, without sockets and clocks. Once there is a verdict it never changes, so every rank that asks learns
// the same.
class Attestation {
 public:
  // `n_ranks`: ranks that must pledge. `only_with_leader`: for communicators that are made from a unique id.
  // There is no yes unless the leader's process is one of the ranks, whose end is then the end of the
  // communicator too. Their members are the ranks 0 to n_ranks - 1.
  explicit Attestation(int n_ranks, bool only_with_leader = false)
      : n_ranks_(n_ranks), members_are_known_(only_with_leader), leader_missing_(only_with_leader) {}

  // A rank pledges that it will use its table if, and only if, the verdict is yes. `member` is any number
  // unique to the rank: its rank, or for a child of a split its rank in the parent. A rank may pledge again,
  // to ask for the verdict. Pledges after the verdict change nothing.
  void Pledge(int member, int n_ranks, const AttestedValues& values);
  // One of the ranks that pledge is the leader's process.
  void LeaderTakesPart() { leader_missing_ = false; }
  // A rank takes no part, so the verdict is no.
  void Decline(int member, const std::string& why);
  // The time is up: the verdict is no. It names the ranks that are missing, or those that pledged where the
  // others are not known: only a parent's ranks know which of them are in the child.
  void Expire();
  // The same ranks have met before in vain. A rank that was missing then is not coming now, so the earlier
  // verdict is taken over.
  void EndAs(const Verdict& earlier);

  // Empty until the meeting has ended.
  const std::optional<Verdict>& verdict() const { return verdict_; }

 private:
  void Refuse(std::string reason, bool timed_out = false);
  std::string NamedRanks() const;

  const int n_ranks_;
  const bool members_are_known_;
  bool leader_missing_;
  // By member; empty once there is a verdict.
  std::map<int, AttestedValues> pledged_;
  std::optional<Verdict> verdict_;
};

}  // namespace dynamiccl
