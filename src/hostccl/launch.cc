// SPDX-License-Identifier: Apache-2.0
// The progress loop. It polls every lane of a launch. If none moved, it waits as ProgressWait says: spin,
// yield, sleep on the doorbell. During long waits it checks whether a peer has died, the user has aborted, or
// the time-out is over.
#include "src/hostccl/launch.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "src/base/fail_point.h"
#include "src/hostccl/channel_lane.h"
#include "src/hostccl/progress_wait.h"
#include "src/hostccl/yield_gauge.h"

namespace dynamiccl::hostccl {
namespace {

// In nanoseconds: longer than a collective normally waits. Only after such a wait does the loop check the
// sockets, which costs a system call for each peer.
constexpr int64_t kHealthyNs = 200'000;
// In nanoseconds. A launch with several communicators sleeps on the doorbell of only one of them, so it must
// wake up often to poll the others.
constexpr int64_t kSeveralCommunicatorsNs = 100'000;

bool AllMaySpin(std::span<const CommunicatorPlan> plans) {
  return std::all_of(plans.begin(), plans.end(),
                     [](const CommunicatorPlan& plan) { return plan.communicator->may_spin(); });
}

}  // namespace

// Owns the lanes of one communicator within a launch.
class Launch::PlanRun {
 public:
  explicit PlanRun(const CommunicatorPlan& plan) : plan_(plan), communicator_(*plan.communicator) {
    if (communicator_.n_ranks() == 1) {
      CopyAlone();
    } else {
      AddLanes();
    }
  }
  PlanRun(const CommunicatorPlan& plan, uint64_t launch_number, std::unique_ptr<LaunchLane> rest)
      : plan_(plan), communicator_(*plan.communicator), launch_number_(launch_number) {
    lanes_.push_back(std::move(rest));
  }

  bool Poll() {
    bool moved = false;
    for (const auto& lane : lanes_) moved |= lane->Poll();
    if (moved) std::erase_if(lanes_, [](const auto& lane) { return lane->done(); });
    if (lanes_.empty()) Complete();
    return moved;
  }

  bool done() const { return lanes_.empty(); }
  Communicator& communicator() const { return communicator_; }

  int64_t next_arrival_ns() const {
    int64_t next = kNotPosted;
    for (const auto& lane : lanes_) next = std::min(next, lane->next_arrival_ns());
    return next;
  }

  // Called when nothing has moved for long. Makes the communicator fail if further waiting is useless.
  void CheckHealth(int64_t idle_ns) {
    if (communicator_.health() != ncclSuccess) return LeaveLanes();
    if (communicator_.aborted()) return Give(ErrorKind::kPeerFailed, "aborted by ncclCommAbort");
    communicator_.mesh()->LookForDeparted();
    // Messages that a departed peer posted before it ended are still in memory, so the lanes are polled
    // before the check.
    Poll();
    if (const auto peer = MissedPeer()) {
      return Give(ErrorKind::kPeerFailed,
                  fmt::format("rank {} ended or closed the communicator before its part was done", *peer));
    }
    if (!done() && idle_ns > communicator_.timeout_ms() * 1'000'000) {
      Give(ErrorKind::kTimeout,
           fmt::format("no progress for {} ms (HOSTCCL_TIMEOUT_MS): a peer hangs or issued "
                       "other calls",
                       communicator_.timeout_ms()));
    }
  }

 private:
  // Makes one lane for each channel that a collective uses, and one for each peer and direction of the sends
  // and receives.
  void AddLanes() {
    int channels = 0;
    for (const CollectiveOperation& operation : plan_.collectives) {
      channels = std::max<int>(channels, operation.config.channels);
    }
    if (channels > 0) launch_number_ = communicator_.BeginCollectiveLaunch();
    for (int channel = 0; channel < channels; ++channel) lanes_.push_back(MakeChannelLane(plan_, channel));
    CopyToSelf();
    AddTransferLanes(plan_.sends, true);
    AddTransferLanes(plan_.receives, false);
  }

  void AddTransferLanes(const std::vector<Transfer>& transfers, bool sends) {
    std::vector<bool> seen(static_cast<size_t>(communicator_.n_ranks()));
    seen[static_cast<size_t>(communicator_.rank())] = true;
    for (const Transfer& transfer : transfers) {
      if (seen[static_cast<size_t>(transfer.peer)]) continue;
      seen[static_cast<size_t>(transfer.peer)] = true;
      lanes_.push_back(MakeTransferLane(plan_, transfer.peer, sends));
    }
  }

  // Copies the sends of this rank to itself into its receives, in order. The group has checked that their
  // numbers and sizes are equal.
  void CopyToSelf() {
    auto receive = plan_.receives.begin();
    for (const Transfer& send : plan_.sends) {
      if (send.peer != communicator_.rank()) continue;
      receive = std::find_if(receive, plan_.receives.end(),
                             [&](const Transfer& transfer) { return transfer.peer == send.peer; });
      if (receive == plan_.receives.end()) return;
      std::memmove(receive->buffer, send.buffer, send.bytes);
      ++receive;
    }
  }

  // With one rank every collective only copies its input, or multiplies it by the operator's factor.
  void CopyAlone() {
    for (const CollectiveOperation& operation : plan_.collectives) {
      const size_t bytes = operation.count * ElementBytes(operation.data_type);
      if (operation.multiplier) {
        FindReduction(operation.data_type, operation.op, 1, operation.Multiplier())
            .ScaleOwn(operation.recv, operation.send, operation.count);
      } else if (operation.send != operation.recv) {
        std::memmove(operation.recv, operation.send, bytes);
      }
    }
    CopyToSelf();
  }

  // Returns a departed peer that has not done its part of this launch; nothing if there is none.
  std::optional<int> MissedPeer() const {
    const PeerMesh& mesh = *communicator_.mesh();
    const auto missed = [&](int peer, uint64_t launch) {
      return peer != communicator_.rank() && mesh.departed(peer) &&
             communicator_.header(peer).completed_launches.load(std::memory_order_acquire) < launch;
    };
    for (const auto& lane : lanes_) {
      // A peer may end once its sends are posted, while an emulated link still delays the messages.
      const bool in_flight = lane->next_arrival_ns() != kNotPosted;
      if (lane->peer() >= 0 && mesh.departed(lane->peer()) && !in_flight) return lane->peer();
      for (int peer = 0; lane->peer() < 0 && peer < communicator_.n_ranks(); ++peer) {
        if (missed(peer, launch_number_)) return peer;
      }
    }
    return {};
  }

  void Complete() {
    if (launch_number_ != 0) communicator_.CompleteCollectiveLaunch(launch_number_);
  }

  void Give(ErrorKind kind, const std::string& message) {
    communicator_.Fail(kind, message);
    LeaveLanes();
  }

  // Drops all lanes. One lane has failed and reported the failure; the others might otherwise wait for ever.
  void LeaveLanes() {
    communicator_.WithdrawBuffers();
    lanes_.clear();
  }

  const CommunicatorPlan& plan_;
  Communicator& communicator_;
  uint64_t launch_number_ = 0;  // 0: no collectives
  std::vector<std::unique_ptr<LaunchLane>> lanes_;
};

// A launch that follows one whose lanes were dropped must post nothing: peers would take its data for those
// of the dropped launch.
Launch::Launch(std::span<const CommunicatorPlan> plans) : plans_(plans), may_spin_(AllMaySpin(plans)) {
  for (const CommunicatorPlan& plan : plans) {
    if (plan.communicator->health() == ncclSuccess) runs_.emplace_back(plan);
  }
  PassFailPoint(FailPoint::kLaunchBegin);
  DropDone();
}

Launch::Launch(const CommunicatorPlan& plan, uint64_t launch_number, std::unique_ptr<LaunchLane> rest)
    : plans_(&plan, 1), may_spin_(AllMaySpin(plans_)) {
  runs_.emplace_back(plan, launch_number, std::move(rest));
}

Launch::~Launch() = default;

ncclResult_t Launch::Run() {
  ProgressWait wait(may_spin_);
  while (!runs_.empty()) {
    if (PollAll()) {
      wait.Reset();
    } else if (const int64_t arrival = NextArrival(); wait.Idle(arrival) == ProgressWait::Next::kSleep) {
      Sleep(wait, arrival);
    }
  }
  return FirstFailure();
}

std::optional<ncclResult_t> Launch::RunBriefly() {
  ProgressWait wait(may_spin_, InlinePatienceNs(may_spin_));
  while (!runs_.empty()) {
    if (PollAll()) {
      wait.Reset();
    } else if (const int64_t arrival = NextArrival();
               arrival != kNotPosted || wait.Idle(arrival) == ProgressWait::Next::kSleep) {
      return {};  // a message on an emulated link takes its time
    }
  }
  return FirstFailure();
}

ncclResult_t Launch::FirstFailure() const {
  PassFailPoint(FailPoint::kLaunchEnd);
  for (const CommunicatorPlan& plan : plans_) {
    const ncclResult_t health = plan.communicator->health();
    if (health != ncclSuccess) return health;
  }
  return ncclSuccess;
}

bool Launch::PollAll() {
  bool moved = false;
  for (PlanRun& run : runs_) moved |= run.Poll();
  if (moved) DropDone();
  if (moved && !runs_.empty()) PassFailPoint(FailPoint::kLaunchMoving);
  return moved;
}

void Launch::DropDone() {
  std::erase_if(runs_, [](const PlanRun& run) { return run.done(); });
}

int64_t Launch::NextArrival() const {
  int64_t next = kNotPosted;
  for (const PlanRun& run : runs_) next = std::min(next, run.next_arrival_ns());
  return next;
}

// Only the first communicator's doorbell ends the sleep; after the sleep all communicators are polled.
void Launch::Sleep(ProgressWait& wait, int64_t arrival_ns) {
  Communicator& first = runs_.front().communicator();
  Doorbell& doorbell = first.header(first.rank()).doorbell;
  const uint32_t armed = doorbell.Arm();
  YieldGauge::Mine().NoteSleep();
  const int64_t idle_ns = wait.idle_ns();
  if (idle_ns > kHealthyNs) {
    for (PlanRun& run : runs_) run.CheckHealth(idle_ns);
    DropDone();
  }
  if (runs_.empty() || PollAll()) {
    wait.Reset();
    return doorbell.Disarm();
  }
  const int64_t limit = runs_.size() == 1 ? ProgressWait::SleepNs(arrival_ns) : kSeveralCommunicatorsNs;
  doorbell.Sleep(armed, limit);
}

}  // namespace dynamiccl::hostccl
