// SPDX-License-Identifier: Apache-2.0
// Decides whether all ranks of a communicator may use a table: they may when all of them pledged equal
// values. This is the leader's side; voting_member.h is a rank's. Protocol and proof obligations:
// docs/agreement.md.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace dynamiccl {

// The values that must be equal on all ranks before any rank uses a table, each with its name in messages.
// All are short texts, so that a message can print a difference. Only votes about a situation
// (mask_agreement.h) set the last two: `mask`, what NCCL offers the rank, and `place`, the number of the call
// at which the rank saw the mask.
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

// The outcome of a vote.
struct Verdict {
  bool agreed = false;
  bool timed_out = false;  // ranks were missing: no rank waits for them again in this job
  std::string reason;      // why the ranks did not agree; empty when they did

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

// If this many votes about situations end because a rank came too late, the leader gives up all further votes
// of the job. In each such vote the other ranks wait for a twentieth of the leader's time-out, so all these
// votes together cost no more than one wait for a communicator.
inline constexpr int kMaxLateSituations = 20;

// The leader's side of one vote. The control server (plugin/runtime) owns it; one thread at a time. It is
// pure state, without sockets and clocks. A verdict never changes once it exists, so every rank that asks
// receives the same one.
class Attestation {
 public:
  // `n_ranks` is the number of ranks that must pledge. Set `only_with_leader` for a communicator that was
  // made from a unique id: its members are the ranks 0 to n_ranks - 1, and the verdict is yes only if the
  // leader's process holds one of them, so that the communicator cannot outlive its leader.
  explicit Attestation(int n_ranks, bool only_with_leader = false)
      : n_ranks_(n_ranks), members_are_known_(only_with_leader), leader_missing_(only_with_leader) {}

  // A rank promises to use its table if, and only if, the verdict is yes. `member` is any number unique to
  // the rank: its rank, or for a child of a split its rank in the parent. A rank may pledge again to ask for
  // the verdict. Pledges after the verdict change nothing.
  void Pledge(int member, int n_ranks, const AttestedValues& values);
  // Declares that one of the pledging ranks runs in the leader's process.
  void LeaderTakesPart() { leader_missing_ = false; }
  // Declares that a rank takes no part, so the verdict is no.
  void Decline(int member, const std::string& why);
  // Ends the vote with no, because the time is up. The reason names the missing ranks. In a child of a
  // split the leader does not know which ranks of the parent are missing, so the reason names the ranks that
  // pledged.
  void Expire();
  // Ends this vote with the verdict of an earlier vote. The same ranks took part in the earlier vote, and it
  // failed. A rank that was missing in the earlier vote will not come to this one.
  void EndAs(const Verdict& earlier);

  // The verdict; empty until the vote has ended.
  const std::optional<Verdict>& verdict() const { return verdict_; }

 private:
  void Refuse(std::string reason, bool timed_out = false);
  std::string NamedRanks() const;

  const int n_ranks_;
  const bool members_are_known_;
  bool leader_missing_;
  // The pledged values by member; empty once there is a verdict.
  std::map<int, AttestedValues> pledged_;
  std::optional<Verdict> verdict_;
};

}  // namespace dynamiccl
