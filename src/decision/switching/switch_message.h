// SPDX-License-Identifier: Apache-2.0
// The messages that the ranks of a communicator exchange to switch tables, as plain values.
// src/decision/control_messages.h defines their bytes; plugin/runtime owns the connections.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dynamiccl {

#define DYNAMICCL_SWITCH_KINDS(X)                                                            \
  X(Prepare) /* leader to all: use `version` from call `boundary` on, if all pledge */       \
  X(Pledge)  /* member to leader: armed at the boundary; it waits there for the verdict */   \
  X(Refuse)  /* member to leader: not pledged, and never will be for this attempt */         \
  X(Verdict) /* leader or member to member: `commit` or not; never changes for an attempt */ \
  X(Ask)     /* waiting member to all: what is the verdict? A member that has not pledged refuses by it */

enum class SwitchKind : uint8_t {
#define DYNAMICCL_SWITCH_KIND(name) k##name,
  DYNAMICCL_SWITCH_KINDS(DYNAMICCL_SWITCH_KIND)
#undef DYNAMICCL_SWITCH_KIND
};

// The reason for which a rank does not pledge an attempt.
enum class Refusal : uint8_t {
  kPassed,         // the rank's calls were at the boundary already
  kUnusableTable,  // the rank does not have the table, or has another one
  kDecided,        // the rank knows, or told a peer, that the attempt will not commit
};

// One message. Fields that a kind does not use are left at their defaults.
struct SwitchMessage {
  SwitchKind kind = SwitchKind::kPrepare;
  bool commit = false;                 // in kVerdict: whether the attempt commits
  Refusal refusal = Refusal::kPassed;  // in kRefuse: the reason
  // In kPrepare: the version of a table, whose bytes travel with the message.
  uint32_t version = 0;
  uint64_t attempt = 0;   // rises from attempt to attempt of a leader
  uint64_t boundary = 0;  // in kPrepare: the first call of the new version
  // In kPledge and kRefuse: number of calls that the sender has begun.
  uint64_t calls = 0;

  friend bool operator==(const SwitchMessage&, const SwitchMessage&) = default;
};

inline constexpr int kAllRanks = -1;

// A message and its receiver.
struct SwitchSend {
  int to = kAllRanks;
  SwitchMessage message;
};

// The messages that one event causes: at most a verdict and the next attempt. It holds three without
// allocating; more must not be added.
class SwitchSends {
 public:
  void Add(int to, const SwitchMessage& message) { sends_[count_++] = {to, message}; }
  std::span<const SwitchSend> sends() const { return {sends_.data(), count_}; }
  const SwitchSend* begin() const { return sends_.data(); }
  const SwitchSend* end() const { return sends_.data() + count_; }
  bool empty() const { return count_ == 0; }

 private:
  std::array<SwitchSend, 3> sends_{};
  size_t count_ = 0;
};

}  // namespace dynamiccl
