// SPDX-License-Identifier: Apache-2.0
// Whether all ranks of a communicator may use a table: they may when all of them pledged equal values. Pure
// state, without sockets and clocks.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace dynamiccl {

// What must be equal on all ranks before any uses a table, each as short text so that a difference can be
// shown.
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

struct AttestedValues {
#define DYNAMICCL_ATTESTED_MEMBER(name, sentence) std::string name;
  DYNAMICCL_ATTESTED_VALUES(DYNAMICCL_ATTESTED_MEMBER)
#undef DYNAMICCL_ATTESTED_MEMBER

  friend bool operator==(const AttestedValues&, const AttestedValues&) = default;
};

// "policy: 12ab on rank 0, 99fe on rank 3" for the first value that differs; empty when all are equal.
std::string DescribeDifference(int rank_a, const AttestedValues& a, int rank_b, const AttestedValues& b);

struct Verdict {
  bool agreed = false;
  bool timed_out = false;  // ranks were missing: nobody waits again in this job
  std::string reason;      // why not; empty when agreed

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

// A rank that is late for a situation's meeting costs the others a wait of a twentieth of the leader's
// time-out, and does so this often at most: all of these together last as long as the one wait for a
// communicator.
inline constexpr int kMaxLateSituations = 20;

// The leader's side of one communicator. `member` is any number unique to a rank of it: its rank, or for a
// child of a split its rank in the parent.
class Attestation {
 public:
  // `only_with_leader`: no yes unless the leader's process is one of the ranks, whose end is then the end of
  // the communicator too.
  explicit Attestation(int n_ranks, bool only_with_leader = false)
      : n_ranks_(n_ranks), leader_missing_(only_with_leader) {}

  // A rank pledges that it will use its table if, and only if, the verdict is yes. It may say so again, to
  // ask for the verdict. Pledges after the verdict change nothing.
  void Pledge(int member, int n_ranks, const AttestedValues& values);
  // One of the ranks that pledge is the leader's process.
  void LeaderTakesPart() { leader_missing_ = false; }
  // A rank takes no part, whatever the others do.
  void Decline(int member, const std::string& why);
  // The time is up.
  void Expire();
  // The same ranks have met before, in vain, and who was missing then is not coming now.
  void EndAs(const Verdict& earlier);

  // Once there is one it never changes.
  const std::optional<Verdict>& verdict() const { return verdict_; }

 private:
  void Refuse(std::string reason, bool timed_out = false);
  std::string MissingRanks() const;

  const int n_ranks_;
  bool leader_missing_;
  std::map<int, AttestedValues> pledged_;
  std::optional<Verdict> verdict_;
};

}  // namespace dynamiccl
