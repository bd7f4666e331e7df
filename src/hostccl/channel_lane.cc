// SPDX-License-Identifier: Apache-2.0
// The two kinds of lanes. A ChannelLane takes the plan's collectives in order. For each it determines its
// channel's part (MakeWork) and runs the algorithm's coroutines on that part. A TransferLane does the same
// for sends or receives.
#include "src/hostccl/channel_lane.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <variant>

#include "src/hostccl/protocols/ll.h"
#include "src/hostccl/protocols/ll128.h"
#include "src/hostccl/protocols/simple.h"

namespace dynamiccl::hostccl {
namespace {

// Every call makes new primitives, so they are constructed in place. Those of LL128 contain blocks of data,
// so they are made on the heap.
using AnyPrimitives =
    std::variant<std::monostate, SimplePrimitives, LlPrimitives, std::unique_ptr<Ll128Primitives>>;

// Makes the primitives of a protocol in `place`. This destroys the primitives that `place` held before.
Primitives& MakePrimitives(AnyPrimitives& place, Protocol protocol, Connection* channel,
                           const Reduction& reduction, size_t chunk_bytes) {
  if (protocol == Protocol::kLL128) {
    place = std::make_unique<Ll128Primitives>(channel, reduction, chunk_bytes);
    return *std::get<std::unique_ptr<Ll128Primitives>>(place);
  }
  if (protocol == Protocol::kLL) return place.emplace<LlPrimitives>(channel, reduction, chunk_bytes);
  return place.emplace<SimplePrimitives>(channel, reduction, chunk_bytes);
}

// Returns the algorithm of the call. With HOSTCCL_SUM=rank_order that is the one that sums in the order of
// ranks.
const AlgorithmEntry& EntryFor(const Communicator& communicator, const CollectiveOperation& operation) {
  const AlgorithmEntry* const ordered =
      communicator.settings().rank_order ? FindOrderedAlgorithm(operation.collective) : nullptr;
  return ordered != nullptr ? *ordered : *FindAlgorithm(operation.collective, operation.config.algorithm);
}

// A coroutine and the primitives that it uses. The object must not be moved while the coroutine exists.
struct Running {
  AnyPrimitives primitives;
  Lane lane;

  bool done() const { return lane.done(); }
  bool Poll() { return lane.Poll(); }
  int64_t next_arrival_ns() const {
    return done() || lane.awaited() == nullptr ? kNotPosted : lane.awaited()->next_arrival_ns();
  }
};

// Returns one channel's part of a collective.
ChannelWork MakeWork(Communicator& communicator, const CollectiveOperation& operation, int channel) {
  ChannelWork work;
  work.send = operation.send;
  work.recv = operation.recv;
  work.element_bytes = ElementBytes(operation.data_type);
  work.count = operation.count;
  const Chunk share = ShareOfChannel(operation.count, work.element_bytes, operation.config.channels, channel);
  work.begin = share.offset;
  work.end = share.offset + share.count;
  work.rank = communicator.rank();
  work.n_ranks = communicator.n_ranks();
  work.root = operation.root;
  work.data_type = operation.data_type;
  work.op = operation.op;
  work.ring = communicator.ring();
  work.position = communicator.ring_position();
  work.tree = communicator.tree(channel % 2);
  work.channel = channel;
  work.node = &communicator.node_exchange(channel);
  work.nodes = communicator.ranks_by_node();
  work.node_index = communicator.node_index();
  return work;
}

// Runs the collectives of one channel in the plan's order. An algorithm may consist of several coroutines,
// which are polled in turn. The next collective starts when all of them are done.
class ChannelLane final : public LaunchLane {
 public:
  ChannelLane(const CommunicatorPlan& plan, int channel) : plan_(plan), channel_(channel) { StartNext(); }

  bool Poll() override {
    bool moved = false;
    while (!done()) {
      bool moved_now = false;
      bool all_done = true;
      for (Running& running : running_) {
        if (!running.done()) moved_now |= running.Poll();
        all_done &= running.done();
      }
      moved |= moved_now;
      if (moved_now) event_.NotePiece();
      if (all_done) StartNext();
      if (!moved_now) break;
    }
    return moved;
  }

  bool done() const override { return finished_; }
  int peer() const override { return -1; }
  int64_t next_arrival_ns() const override {
    int64_t next = kNotPosted;
    for (const Running& running : running_) next = std::min(next, running.next_arrival_ns());
    return next;
  }

 private:
  // Starts the next collective that uses this channel, or ends the lane if there is none.
  void StartNext() {
    event_.End();
    while (next_ < plan_.collectives.size() && plan_.collectives[next_].config.channels <= channel_) ++next_;
    finished_ = next_ == plan_.collectives.size();
    if (finished_) return;
    const CollectiveOperation& operation = plan_.collectives[next_++];
    Communicator& communicator = *plan_.communicator;
    event_.Begin(communicator.profiler().get(), operation.events, channel_);
    work_ = MakeWork(communicator, operation, channel_);
    const Reduction reduction =
        FindReduction(operation.data_type, operation.op, communicator.n_ranks(), operation.Multiplier());
    auto place = running_.begin();
    for (const AlgorithmBody body : EntryFor(communicator, operation).bodies) {
      Running& running = *place++;
      running.lane = {};
      if (body == nullptr) continue;
      Primitives& primitives =
          MakePrimitives(running.primitives, operation.config.protocol, communicator.channel(channel_),
                         reduction, operation.chunk_bytes);
      running.lane = body(primitives, work_);
    }
  }

  const CommunicatorPlan& plan_;
  const int channel_;
  size_t next_ = 0;
  bool finished_ = false;
  ChannelWork work_;
  std::array<Running, std::tuple_size_v<decltype(AlgorithmEntry::bodies)>> running_;
  KernelChannelEvent event_;
};

// Runs sends or receives one after another, each with its profiler event.
Lane RunTransfers(Primitives& primitives, const ProfilerSession* profiler, std::vector<Transfer> transfers,
                  bool sends) {
  KernelChannelEvent event;
  for (const Transfer& transfer : transfers) {
    event.Begin(profiler, transfer.events, kPointToPointChannel);
    if (sends) {
      co_await primitives.Send(transfer.buffer, transfer.bytes);
    } else {
      co_await primitives.Recv(transfer.buffer, transfer.bytes);
    }
    event.NotePiece();
    event.End();
  }
}

// Runs the sends to one peer, or the receives from it, with protocol Simple on the point-to-point channel.
class TransferLane final : public LaunchLane {
 public:
  TransferLane(const CommunicatorPlan& plan, int peer, bool sends) : peer_(peer) {
    std::vector<Transfer> mine;
    for (const Transfer& transfer : sends ? plan.sends : plan.receives) {
      if (transfer.peer == peer) mine.push_back(transfer);
    }
    Reduction bytes = FindReduction(DataType::kInt8, ReduceOp::kSum, 1);
    Primitives& primitives = MakePrimitives(running_.primitives, Protocol::kSimple,
                                            plan.communicator->channel(kPointToPointChannel), bytes, 0);
    primitives.Connect({{sends ? -1 : peer, -1, -1}}, {{sends ? peer : -1, -1, -1}});
    running_.lane = RunTransfers(primitives, plan.communicator->profiler().get(), std::move(mine), sends);
  }

  bool Poll() override {
    bool moved = false;
    while (!done() && running_.Poll()) moved = true;
    return moved;
  }
  bool done() const override { return running_.done(); }
  int peer() const override { return peer_; }
  int64_t next_arrival_ns() const override { return running_.next_arrival_ns(); }

 private:
  int peer_;
  Running running_;
};

}  // namespace

std::unique_ptr<LaunchLane> MakeChannelLane(const CommunicatorPlan& plan, int channel) {
  return std::make_unique<ChannelLane>(plan, channel);
}

std::unique_ptr<LaunchLane> MakeTransferLane(const CommunicatorPlan& plan, int peer, bool sends) {
  return std::make_unique<TransferLane>(plan, peer, sends);
}

}  // namespace dynamiccl::hostccl
