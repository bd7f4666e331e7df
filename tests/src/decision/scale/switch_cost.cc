// SPDX-License-Identifier: Apache-2.0
#include "tests/src/decision/scale/switch_cost.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <numeric>
#include <queue>
#include <vector>

#include "src/decision/switching/switch_leader.h"
#include "src/decision/switching/switch_member.h"

namespace dynamiccl::testing {
namespace {

// Periods of a busy leader and of a rank with an armed boundary, as in plugin/runtime.
constexpr int64_t kLeaderTickNs = 1'000'000;
constexpr int64_t kMemberTickNs = 10'000'000;

class SwitchingCommunicator {
 public:
  SwitchingCommunicator(int n_ranks, const SwitchNetwork& network) : network_(network), leader_(n_ranks) {
    for (int rank = 0; rank < n_ranks; ++rank) {
      gates_.emplace_back(1);
      members_.emplace_back(gates_.back());
      At(kMemberTickNs, [this, rank] { TickMember(rank); });
    }
    At(0, [this] { BeginCall(); });
  }

  SwitchCost Switch() {
    cost_ = {};
    const int64_t from_ns = now_ns_;
    const uint64_t from_call = call_;
    leader_.Request({SwitchReason::kAdoption, ++version_});
    At(now_ns_, [this] { TickLeader(); });
    while (!AllUse(version_) && (leader_.busy() || cost_.committed)) RunOne();
    cost_.calls = call_ - 1 - from_call;
    cost_.ns = now_ns_ - from_ns;
    // Late messages arrive between two adoptions, which keep a spacing.
    for (const int64_t until_ns = now_ns_ + kAdoptionSpacingNs; now_ns_ < until_ns;) RunOne();
    return cost_;
  }

 private:
  struct Event {
    int64_t at_ns = 0;
    uint64_t order = 0;
    std::function<void()> happen;
    bool operator>(const Event& other) const {
      return at_ns != other.at_ns ? at_ns > other.at_ns : order > other.order;
    }
  };

  void At(int64_t at_ns, std::function<void()> happen) {
    events_.push({std::max(at_ns, now_ns_), events_begun_++, std::move(happen)});
  }
  void RunOne() {
    const Event event = events_.top();
    events_.pop();
    now_ns_ = event.at_ns;
    event.happen();
  }
  bool AllUse(uint32_t version) const {
    return std::all_of(gates_.begin(), gates_.end(),
                       [&](const auto& gate) { return gate.version() == version; });
  }

  // ---- the issuing threads: a collective ends everywhere before the next one begins ----
  void BeginCall() {
    for (CallGate& gate : gates_) gate.Begin(call_);
    call_began_ns_ = now_ns_;
    passed_.assign(gates_.size(), false);
    left_ = gates_.size();
    for (size_t rank = 0; rank < gates_.size(); ++rank) TryPass(rank);
  }
  void TryPass(size_t rank) {
    if (passed_[rank] || !gates_[rank].TryPass(call_)) return;
    passed_[rank] = true;
    if (--left_ > 0) return;
    cost_.waited_ns = std::max(cost_.waited_ns, now_ns_ - call_began_ns_);
    ++call_;
    At(now_ns_ + network_.call_ns, [this] { BeginCall(); });
  }

  // ---- members ----
  void TickMember(int rank) {
    const auto r = static_cast<size_t>(rank);
    SendToLeader(rank, members_[r].Tick(now_ns_));
    TryPass(r);
    At(now_ns_ + kMemberTickNs, [this, rank] { TickMember(rank); });
  }
  void ReceiveAtMember(int rank, const SwitchMessage& message) {
    const auto r = static_cast<size_t>(rank);
    if (message.kind == SwitchKind::kPrepare) {
      members_[r].Prepare(message, true);
      SendToLeader(rank, members_[r].Answer());
    } else if (message.kind == SwitchKind::kVerdict) {
      members_[r].ApplyVerdict(message.attempt, message.commit);
      TryPass(r);
    }
  }
  // In a job, ranks have a connection only to the leader.
  void SendToLeader(int rank, const SwitchSends& sends) {
    for (const SwitchSend& send : sends) {
      Count(send.message, 1);
      At(now_ns_ + network_.one_way_ns, [this, rank, message = send.message] { Queue(rank, message); });
    }
  }

  // ---- the leader: one thread ----
  void Queue(int rank, const SwitchMessage& message) {
    inbox_.emplace_back(rank, message);
    if (inbox_.size() == 1) At(busy_until_ns_, [this] { TakeMessage(); });
  }
  void TakeMessage() {
    const auto [rank, message] = inbox_.front();
    Work(1);
    if (message.kind == SwitchKind::kAsk)
      SendFromLeader(leader_.AnswerPeer(rank, message.attempt));
    else
      SendFromLeader(leader_.HandleAnswer(rank, message, gates_[0].calls()));
    CountOutcome();
    inbox_.pop_front();
    if (!inbox_.empty()) At(busy_until_ns_, [this] { TakeMessage(); });
  }
  void TickLeader() {
    if (now_ns_ < busy_until_ns_) return At(busy_until_ns_, [this] { TickLeader(); });
    SendFromLeader(leader_.Tick(now_ns_, gates_[0].calls()));
    CountOutcome();
    if (leader_.busy()) At(std::max(now_ns_ + kLeaderTickNs, busy_until_ns_), [this] { TickLeader(); });
  }
  void SendFromLeader(const SwitchSends& sends) {
    for (const SwitchSend& send : sends) {
      const int from = send.to == kAllRanks ? 0 : send.to;
      const int until = send.to == kAllRanks ? static_cast<int>(gates_.size()) : send.to + 1;
      Count(send.message, static_cast<uint64_t>(until - from));
      for (int rank = from; rank < until; ++rank) {
        Work(1);
        At(busy_until_ns_ + network_.one_way_ns,
           [this, rank, message = send.message] { ReceiveAtMember(rank, message); });
      }
    }
  }
  void Work(int64_t messages) {
    busy_until_ns_ = std::max(busy_until_ns_, now_ns_) + messages * network_.leader_message_ns;
  }

  void Count(const SwitchMessage& message, uint64_t messages) {
    cost_.messages[static_cast<size_t>(message.kind)] += messages;
  }
  void CountOutcome() {
    const auto outcome = leader_.TakeOutcome();
    if (!outcome) return;
    ++cost_.attempts;
    cost_.committed = outcome->end == SwitchOutcome::End::kCommitted;
  }

  const SwitchNetwork network_;
  SwitchLeader leader_;
  std::deque<CallGate> gates_;  // The members point to them.
  std::vector<SwitchMember> members_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t events_begun_ = 0;
  int64_t now_ns_ = 0;
  uint64_t call_ = 0;
  int64_t call_began_ns_ = 0;
  std::vector<bool> passed_;  // By rank; true once the call's version is known.
  size_t left_ = 0;           // The number of ranks that have not passed.
  std::deque<std::pair<int, SwitchMessage>> inbox_;
  int64_t busy_until_ns_ = 0;  // For the leader's thread.
  uint32_t version_ = 1;
  SwitchCost cost_;
};

}  // namespace

uint64_t SwitchCost::total() const {
  return std::accumulate(messages.begin(), messages.end(), uint64_t{0});
}

SwitchCost CostOfSwitch(int n_ranks, const SwitchNetwork& network, bool first) {
  SwitchingCommunicator communicator(n_ranks, network);
  const SwitchCost cost = communicator.Switch();
  if (first) return cost;
  communicator.Switch();
  return communicator.Switch();
}

}  // namespace dynamiccl::testing
