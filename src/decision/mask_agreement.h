// SPDX-License-Identifier: Apache-2.0
// Decides which configurations may be chosen: those that NCCL offers on every rank.
//
// A rank learns what NCCL offers only when NCCL asks it about a call. So for each situation the ranks
// exchange their masks at one of the situation's calls, which is left to NCCL. The result is used from a
// later call of the situation on:
//   call n      This rank sends its mask to the leader and continues. NCCL chooses for the call.
//   next call   This rank takes the verdict, and waits if the verdict is not there yet. The leader decides
//               within its time-out. A rank that has sent its mask does not decide by a time-out of its
//               own. The verdict is one of:
//     equal on all ranks    The mask is used from this call on, for good.
//     different             NCCL chooses, for good.
//     a rank was late       NCCL chooses. The exchange is repeated at the 4th, 16th, 64th, ... call.
// All ranks take these steps at the same calls, because they count calls alike and a verdict never changes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "src/collective/collective.h"
#include "src/collective/legal_configs.h"
#include "src/collective/size_class.h"
#include "src/decision/pending_verdict.h"

namespace dynamiccl {

// Everything on which NCCL's offer depends, in values that are equal on all ranks.
struct CallSituation {
  Collective collective = Collective::kAllReduce;  // one of the tunable ones
  SizeClass size_class;
  uint32_t operands = 0;  // digest of data types and operators (AddOperands), below 2^31
};

// Adds one call's data type and operator to a digest and returns the new digest. The digest covers a group's
// calls of one collective and begins at 0. If all calls of a group are alike, the result is the digest of one
// call.
inline uint32_t AddOperands(uint32_t digest, int data_type, int op) {
  // All user-defined operators count as one operator.
  constexpr int kUserOp = 5;
  constexpr uint32_t kMixed = 1u << 30;
  const auto call = static_cast<uint32_t>(1 + data_type * 8 + (op < kUserOp ? op : kUserOp));
  if (digest == 0 || digest == call) return call;
  return ((digest * 31 + call) & (kMixed - 1)) | kMixed;
}

// One rank's pledge about a situation.
struct MaskPledge {
  CallSituation situation;
  int attempt = 0;
  uint64_t call_number = 0;
  ConfigMask mask;
};

// Sends pledges to the leader. The runtime implements it.
class MaskExchange {
 public:
  virtual ~MaskExchange() = default;
  // Sends the pledge and returns at once. The verdict is yes only if all ranks pledged equal masks at the
  // same call number. Implementations follow the rules of VotingMember.
  virtual std::shared_ptr<PendingVerdict> Pledge(const MaskPledge& pledge) = 0;
};

// The masks of one communicator on one rank, owned by its tuner session (plugin/tuner). Several threads may
// ask at the same time; a settled situation costs one load. If the ranks do not agree, the situation stays
// with NCCL.
class MaskAgreement {
 public:
  using Refused = std::function<void(const CallSituation& situation, const Verdict& verdict)>;
  // The constructor's `refused` is called with every verdict that is not a yes. `most_unanswered` limits how
  // many votes this rank joins as long as there was no vote to which all ranks came. A missing rank may never
  // come, and the leader's total waiting time for late ranks is limited for the whole job. 0: no limit.
  MaskAgreement(std::unique_ptr<MaskExchange> exchange, Refused refused, int most_unanswered = 0)
      : exchange_(std::move(exchange)), refused_(std::move(refused)), most_unanswered_(most_unanswered) {}

  // Returns the mask that holds on all ranks at this call; nothing if NCCL is to choose. `seen` is what NCCL
  // offers on this rank. Calls come in program order. Until a situation is settled, this takes a lock and may
  // wait for the leader.
  std::optional<ConfigMask> AgreedMask(const CallSituation& situation, uint64_t call_number,
                                       const ConfigMask& seen);
  // Returns the verdict for which AgreedMask would wait; null if AgreedMask would not wait.
  std::shared_ptr<PendingVerdict> AwaitedVerdict(const CallSituation& situation, uint64_t call_number);
  // Serves questions that are not about a call: returns what AgreedMask would return, but counts no call and
  // sends nothing.
  std::optional<ConfigMask> Settled(const CallSituation& situation) const;

 private:
  // A situation that is not settled.
  struct Open {
    uint64_t calls = 0;  // calls of the situation so far
    uint64_t last_call = 0;
    int attempts = 0;
    bool due = false;  // an exchange is due, but this rank takes part in no votes at present
    MaskPledge pledged;
    std::shared_ptr<PendingVerdict> verdict;  // null: no exchange is under way
  };
  // Slots of the hash table, of which three quarters may be used. Programs have dozens of situations; any
  // beyond the limit stay with NCCL.
  static constexpr size_t kSlots = 1024;
  static constexpr size_t kMaxSettled = kSlots * 3 / 4;

  // Returns the word of a settled situation; 0 if the situation is not settled.
  uint64_t Find(uint64_t key) const;
  void Settle(uint64_t key, const ConfigMask& mask);
  std::optional<ConfigMask> NegotiateMask(const CallSituation& situation, uint64_t call_number,
                                          const ConfigMask& seen);
  // Waits for the verdict and applies it. Returns true if the situation is now settled; `open` is then
  // destroyed.
  bool ApplyVerdict(uint64_t key, Open& open);
  // True while this rank takes part in no further votes.
  bool SkipsVotes() const { return most_unanswered_ != 0 && !all_came_ && pledges_ >= most_unanswered_; }

  const std::unique_ptr<MaskExchange> exchange_;
  const Refused refused_;
  const int most_unanswered_;
  std::mutex mutex_;  // guards the members up to all_came_
  std::map<uint64_t, Open> open_;
  size_t n_settled_ = 0;
  int pledges_ = 0;
  bool all_came_ = false;  // all ranks took part in some vote
  // A settled situation in one word: its key, its mask (empty: refused) and a bit that is always set.
  std::array<std::atomic<uint64_t>, kSlots> slots_{};
};

}  // namespace dynamiccl
