// SPDX-License-Identifier: Apache-2.0
// Explores every interleaving of the shipped state machines in small cases: issuing threads, control threads
// and the leader, over a network that delays, loses, repeats and reorders. A message may arrive at any later
// time, any number of times or never. In every state the ranks must agree, and the end must still be
// reachable.
#include <gtest/gtest.h>
#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "src/decision/switching/call_gate.h"
#include "src/decision/switching/switch_leader.h"
#include "src/decision/switching/switch_member.h"
#include "tests/src/decision/switching/explored_states.h"

namespace dynamiccl {
namespace {

// The smallest case with a leader, a peer, and calls on both sides of the boundary. Larger cases are left to
// the model for spin and to the simulation.
constexpr int kRanks = 2;
constexpr uint64_t kCalls = 4;
constexpr uint64_t kAttempts = 1;
// Call numbers increase in steps of this size, so that the least distance is two calls instead of eight.
constexpr uint64_t kStride = 7;

struct OnItsWay {
  int from = 0;
  int to = 0;
  SwitchMessage message;
  friend bool operator==(const OnItsWay&, const OnItsWay&) = default;
};

template <class Member>
struct Rank {
  CallGate gate;
  Member member{gate};
  uint64_t call = 0;
  bool begun = false;
  bool answer_due = false;

  Rank() = default;
  Rank(const Rank& other) : gate(other.gate), member(other.member, gate) { CopyThread(other); }
  Rank& operator=(const Rank&) = delete;

 private:
  void CopyThread(const Rank& other) {
    call = other.call;
    begun = other.begun;
    answer_due = other.answer_due;
  }
};

template <class Member>
struct SwitchingState {
  SwitchLeader leader{kRanks};
  std::array<Rank<Member>, kRanks> ranks;
  std::vector<OnItsWay> sent;
  std::array<uint32_t, kCalls> decided{};  // The version + 1, by call.
  int64_t leader_ns = 0;
  std::string failure;
};

template <class Member>
class Switching {
 public:
  using State = SwitchingState<Member>;
  using States = std::vector<State>;

  State First() const {
    State first;
    first.leader.Request({SwitchReason::kOperator, 1});  // Its first Tick may come at any time.
    return first;
  }

  bool HasEnded(const State& state) {
    states_after_a_switch_ += state.decided[kCalls - 1] > 1 && state.decided[0] == 1 ? 1 : 0;
    return std::all_of(state.ranks.begin(), state.ranks.end(),
                       [](const auto& rank) { return rank.call == kCalls; });
  }
  size_t states_after_a_switch() const { return states_after_a_switch_; }

  States After(const State& state) const {
    States next;
    for (int r = 0; r < kRanks; ++r) {
      AddCallSteps(state, r, next);
      AddControlSteps(state, r, next);
    }
    AddLeaderSteps(state, next);
    return next;
  }

  uint64_t Digest(const State& state) const {
    words_.clear();
    const auto put = [this](uint64_t word) { words_.push_back(word); };
    state.leader.VisitState(put);
    for (const auto& rank : state.ranks) {
      rank.gate.VisitState(put);
      rank.member.VisitState(put);
      put(rank.call << 2 | uint64_t{rank.begun} << 1 | uint64_t{rank.answer_due});
    }
    for (const uint32_t decided : state.decided) put(decided);
    put(static_cast<uint64_t>(state.leader_ns));
    uint64_t sent = 0;  // The messages form a set, so their order is not part of the state.
    for (const OnItsWay& message : state.sent) sent += DigestOf(message);
    put(sent);
    return XXH3_64bits(words_.data(), words_.size() * sizeof(uint64_t));
  }

 private:
  void AddCallSteps(const State& state, int r, States& next) const {
    const auto& rank = state.ranks[static_cast<size_t>(r)];
    if (rank.call == kCalls) return;
    State after = state;
    auto& moved = after.ranks[static_cast<size_t>(r)];
    if (!moved.begun) {
      moved.gate.Begin(moved.call * kStride);
      moved.begun = true;
    } else if (moved.gate.TryPass(moved.call * kStride)) {
      uint32_t& first = after.decided[moved.call];
      if (first == 0) first = moved.gate.version() + 1;
      if (first != moved.gate.version() + 1) after.failure = fmt::format("DIVERGENT at call {}", moved.call);
      ++moved.call;
      moved.begun = false;
    } else {
      return;
    }
    next.push_back(std::move(after));
  }

  void AddControlSteps(const State& state, int r, States& next) const {
    const auto index = static_cast<size_t>(r);
    if (state.ranks[index].answer_due) {
      State& after = next.emplace_back(state);
      after.ranks[index].answer_due = false;
      Send(after, r, after.ranks[index].member.Answer());
      return;
    }
    for (const OnItsWay& arriving : state.sent) {
      if (arriving.to == r) Hear(next.emplace_back(state), arriving);
    }
    // This is longer than any delay after which a member acts.
    State& after = next.emplace_back(state);
    for (const int64_t now_ns : {int64_t{1}, int64_t{1'000'000'000'000}}) {
      Send(after, r, after.ranks[index].member.Tick(now_ns));
    }
  }

  void AddLeaderSteps(const State& state, States& next) const {
    if (state.ranks[0].answer_due || LastAttemptIsDecided(state)) return;
    for (const int64_t passed_ns : {int64_t{0}, kSwitchAttemptNs}) {
      // One long pause per attempt is enough.
      if (state.leader_ns + passed_ns > static_cast<int64_t>(kAttempts) * kSwitchAttemptNs) continue;
      State& after = next.emplace_back(state);
      after.leader_ns += passed_ns;
      Send(after, 0, after.leader.Tick(after.leader_ns, after.ranks[0].gate.calls()));
    }
  }

  bool LastAttemptIsDecided(const State& state) const {
    return std::any_of(state.sent.begin(), state.sent.end(), [](const OnItsWay& sent) {
      return sent.message.kind == SwitchKind::kVerdict && sent.from == 0 && sent.message.attempt >= kAttempts;
    });
  }

  void Hear(State& after, const OnItsWay& arriving) const {
    auto& rank = after.ranks[static_cast<size_t>(arriving.to)];
    const SwitchMessage& message = arriving.message;
    switch (message.kind) {
      case SwitchKind::kPrepare:
        rank.member.Prepare(message, true);
        rank.answer_due = true;
        break;
      case SwitchKind::kPledge:
      case SwitchKind::kRefuse:
        Send(after, 0, after.leader.HandleAnswer(arriving.from, message, rank.gate.calls()));
        break;
      case SwitchKind::kVerdict:
        rank.member.ApplyVerdict(message.attempt, message.commit);
        break;
      case SwitchKind::kAsk:
        Send(after, arriving.to,
             arriving.to == 0 ? after.leader.AnswerPeer(arriving.from, message.attempt)
                              : rank.member.AnswerPeer(arriving.from, message.attempt));
    }
  }

  void Send(State& after, int from, const SwitchSends& sends) const {
    for (const SwitchSend& send : sends) {
      if (send.message.kind == SwitchKind::kPrepare && send.message.attempt > kAttempts) continue;
      for (int to = 0; to < kRanks; ++to) {
        if (send.to != kAllRanks && send.to != to) continue;
        OnItsWay sent{from, to, send.message};
        sent.message.calls = 0;  // The number only tunes the distance.
        if (std::find(after.sent.begin(), after.sent.end(), sent) == after.sent.end()) {
          after.sent.push_back(sent);
        }
      }
    }
  }

  static uint64_t DigestOf(const OnItsWay& sent) {
    const SwitchMessage& m = sent.message;
    const std::array<uint64_t, 6> words{
        static_cast<uint64_t>(sent.from) << 32 | static_cast<uint64_t>(sent.to),
        static_cast<uint64_t>(m.kind) << 16 | static_cast<uint64_t>(m.refusal) << 8 | uint64_t{m.commit},
        m.version,
        m.attempt,
        m.boundary,
        m.calls};
    return XXH3_64bits(words.data(), sizeof(words));
  }

  mutable std::vector<uint64_t> words_;
  size_t states_after_a_switch_ = 0;
};

// A wrong member. It tells a peer "off" about an attempt that it does not know, and nevertheless pledges that
// attempt later.
class ForgetsItsRefusals : public SwitchMember {
 public:
  explicit ForgetsItsRefusals(CallGate& gate) : SwitchMember(gate) {}
  ForgetsItsRefusals(const ForgetsItsRefusals& other, CallGate& gate)
      : SwitchMember(other, gate), answered_attempt_(other.answered_attempt_) {}

  void Prepare(const SwitchMessage& prepare, bool usable) {
    answered_attempt_ = std::max(answered_attempt_, prepare.attempt);
    SwitchMember::Prepare(prepare, usable);
  }
  SwitchSends AnswerPeer(int from, uint64_t attempt) {
    if (attempt <= answered_attempt_) return SwitchMember::AnswerPeer(from, attempt);
    SwitchMessage off;
    off.kind = SwitchKind::kVerdict;
    off.attempt = attempt;
    SwitchSends sends;
    sends.Add(from, off);
    return sends;
  }

 private:
  uint64_t answered_attempt_ = 0;
};

// A wrong member. It ignores that its attempt was called off.
class MissesAborts : public SwitchMember {
 public:
  explicit MissesAborts(CallGate& gate) : SwitchMember(gate) {}
  MissesAborts(const MissesAborts& other, CallGate& gate) : SwitchMember(other, gate) {}
  void ApplyVerdict(uint64_t attempt, bool commit) {
    if (commit) (void)SwitchMember::ApplyVerdict(attempt, commit);
  }
};

template <class Member>
std::string Explore() {
  Switching<Member> switching;
  return testing::ExploredStates(switching).Explore();
}

TEST(SwitchingExplored, AllInterleavingsAgreeAndCanEnd) {
  Switching<SwitchMember> switching;
  testing::ExploredStates states(switching);
  EXPECT_EQ(states.Explore(), "");
  RecordProperty("states", static_cast<int>(states.size()));
  EXPECT_GT(states.size(), 100'000u);
  EXPECT_GT(switching.states_after_a_switch(), 1000u);
}

TEST(SwitchingExplored, FindsAnAnswerToAPeerThatIsNotKept) {
  EXPECT_TRUE(Explore<ForgetsItsRefusals>().starts_with("DIVERGENT"));
}

TEST(SwitchingExplored, FindsAnEndlessWait) {
  EXPECT_EQ(Explore<MissesAborts>(), "ENDLESS WAIT");
}

}  // namespace
}  // namespace dynamiccl
