// SPDX-License-Identifier: Apache-2.0
// Connects a rank to its peers' memory, and records failures. See communicator.h.
#include "src/hostccl/communicator.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "src/base/fail_point.h"
#include "src/base/settings.h"
#include "src/hostccl/debug_log.h"
#include "src/hostccl/reduce_kernels/reduce_kernel.h"
#include "src/hostccl/timeout.h"

namespace dynamiccl::hostccl {
namespace {

// In nanoseconds: how long WithdrawBuffers waits for a peer in another process, if that process died while it
// touched a piece of a buffer or was stopped while it read a piece. A piece normally takes well under a
// millisecond.
constexpr int64_t kMaxTouchNs = 500'000'000;
// The interval at which a rank that waits longer for a peer looks again.
constexpr std::chrono::milliseconds kLookAgain{1};

}  // namespace

ncclResult_t ToNcclResult(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument:
    case ErrorKind::kNotFound:
    case ErrorKind::kCorrupt:
      return ncclInvalidArgument;
    case ErrorKind::kUnsupported:
      return ncclInvalidUsage;
    case ErrorKind::kUnavailable:
      return ncclSystemError;
    case ErrorKind::kTimeout:
    case ErrorKind::kPeerFailed:
      return ncclRemoteError;
    case ErrorKind::kInternal:
      return ncclInternalError;
  }
  return ncclInternalError;
}

Result<CommunicatorSettings> CommunicatorSettings::FromEnvironment() {
  CommunicatorSettings settings;
  DYNAMICCL_CHECK_OK(CheckFailPointSetting());
  DYNAMICCL_TRY(settings.timeout_ms, TimeoutMs());
  settings.user_sets_timeout = UserSetsTimeout();
  DYNAMICCL_TRY(const int64_t channels, IntegerSetting(Setting::kHostcclChannels));
  if (channels < 1 || channels > kMaxChannels) {
    return MakeError(ErrorKind::kInvalidArgument, "HOSTCCL_CHANNELS={} is not in 1 to {}", channels,
                     kMaxChannels);
  }
  settings.max_channels = static_cast<int32_t>(channels);
  const std::string sum = TextSetting(Setting::kHostcclSum);
  if (sum != "algorithm" && sum != "rank_order") {
    return MakeError(ErrorKind::kInvalidArgument, "HOSTCCL_SUM='{}' is neither algorithm nor rank_order",
                     sum);
  }
  settings.rank_order = sum == "rank_order";
  DYNAMICCL_CHECK_OK(KernelSetFromEnvironment());
  DYNAMICCL_TRY(settings.emulated, EmulatedFromEnvironment());
  DYNAMICCL_TRY(const int64_t inline_calls, IntegerSetting(Setting::kHostcclInline));
  settings.inline_calls = inline_calls != 0;
  DYNAMICCL_TRY(settings.copies_between_processes, BoolSetting(Setting::kHostcclCma));
  return settings;
}

Communicator::Communicator(Parts parts) : parts_(std::move(parts)), ring_(RingOrder(NodesOfRanks())) {
  ring_position_ = static_cast<int>(std::find(ring_.begin(), ring_.end(), rank()) - ring_.begin());
  for (int which = 0; which < 2; ++which) {
    trees_[static_cast<size_t>(which)] = TreeOverNodes(which, rank(), NodesOfRanks());
  }
  may_spin_ = HasCoreForEachRank();
  Connect();
  if (n_ranks() > 1) JoinNode();
}

bool Communicator::HasCoreForEachRank() const {
  int cores = 0;
  for (size_t word = 0; word < std::size(CoreSet{}.words); ++word) {
    uint64_t usable = 0;
    for (const auto& segment : parts_.segments) usable |= segment->header().cores.words[word];
    cores += std::popcount(usable);
  }
  return parts_.links->n_ranks() <= cores;
}

std::vector<int> Communicator::NodesOfRanks() const {
  std::vector<int> nodes;
  for (const int rank : parts_.link_ranks) nodes.push_back(parts_.links->node(rank));
  return nodes;
}

int64_t Communicator::timeout_ms() const {
  return settings().user_sets_timeout ? settings().timeout_ms
                                      : std::max(settings().timeout_ms, RaisedTimeoutMs());
}

// Fills in the table of connections. For each channel and peer it has the two FIFOs, the doorbell to ring and
// the link that delays messages. For a remote peer the table has the FIFO of the peer's shadow and the
// relay's doorbell.
void Communicator::Connect() {
  const auto self = static_cast<size_t>(rank());
  const size_t n = parts_.segments.size();
  std::vector<bool> shaped_from(n);
  const int own = parts_.link_ranks[self];
  const auto rails = static_cast<size_t>(parts_.links->topology().rails);
  for (size_t index = 0; index < rails * n; ++index) {
    outgoing_links_.push_back(
        parts_.links->Link(own, parts_.link_ranks[index % n], static_cast<int>(index / n)));
    shaped_from[index % n] = parts_.links->shaped(parts_.link_ranks[index % n], own);
  }
  connections_.resize(n * kFifosPerPeer);
  for (size_t index = 0; index < connections_.size(); ++index) {
    const size_t peer = index % n;
    const int channel = static_cast<int>(index / n);
    Connection& connection = connections_[index];
    connection.outgoing = &parts_.segments[peer]->fifo(rank(), channel);
    connection.incoming = &parts_.segments[self]->fifo(static_cast<int>(peer), channel);
    const bool remote = !same_host(static_cast<int>(peer));
    Doorbell* const bell = remote ? parts_.relay->doorbell() : &parts_.segments[peer]->header().doorbell;
    ShapedLink* const link = outgoing_links_[static_cast<size_t>(channel) % rails * n + peer].get();
    connection.simple_send = {&connection.outgoing->simple, bell, link, remote};
    connection.simple_receive = {&connection.incoming->simple, bell, shaped_from[peer]};
    connection.ll_send = {&connection.outgoing->ll, bell, link, remote};
    connection.ll_receive = {&connection.incoming->ll, bell, shaped_from[peer]};
    connection.ll128_send = {&connection.outgoing->ll128, bell, link, remote};
    connection.ll128_receive = {&connection.incoming->ll128, bell, shaped_from[peer]};
  }
}

void Communicator::CompleteCollectiveLaunch(uint64_t launch) {
  header(rank()).completed_launches.store(launch, std::memory_order_release);
  if (parts_.relay != nullptr) parts_.relay->doorbell()->Ring();
}

// Closes all sockets. The peers then notice that the rank is gone, and all waits on the sockets end.
void Communicator::CutConnections() {
  if (mesh() != nullptr) mesh()->Shutdown();
  if (parts_.relay != nullptr) parts_.relay->Shutdown();
}

// Groups the ranks by node, and makes for each channel an exchange with the ranks of this node.
void Communicator::JoinNode() {
  const std::vector<int> nodes = NodesOfRanks();
  std::vector<int> seen;
  for (int peer = 0; peer < n_ranks(); ++peer) {
    const auto at = std::find(seen.begin(), seen.end(), nodes[static_cast<size_t>(peer)]);
    const auto index = static_cast<size_t>(at - seen.begin());
    if (at == seen.end()) {
      seen.push_back(nodes[static_cast<size_t>(peer)]);
      ranks_by_node_.emplace_back();
    }
    ranks_by_node_[index].push_back(peer);
    if (peer == rank()) node_index_ = static_cast<int>(index);
  }
  piece_scratch_.resize(ranks_by_node_[static_cast<size_t>(node_index_)].size());
  const int own = parts_.link_ranks[static_cast<size_t>(rank())];
  for (int channel = 0; channel < kMaxChannels; ++channel) {
    bool one_host = true;
    std::vector<NodeMember> members;
    for (const int peer : ranks_by_node_[static_cast<size_t>(node_index_)]) {
      const int link = parts_.link_ranks[static_cast<size_t>(peer)];
      members.push_back({peer, &header(peer), parts_.links->Link(link, own, channel),
                         parts_.links->Link(own, link, channel)});
      one_host &= mesh()->same_host(peer);
    }
    node_exchanges_.push_back(
        std::make_unique<NodeExchange>(*this, channel, std::move(members), one_host, piece_scratch_));
  }
}

void Communicator::WithdrawBuffers() {
  if (n_ranks() == 1) return;
  header(rank()).gate.withdrawn.store(true, std::memory_order_seq_cst);
  const int64_t begin_ns = MonotonicNanoseconds();
  for (int peer = 0; peer < n_ranks(); ++peer) AwaitLeave(peer, begin_ns);
}

// A peer that is a thread of this process always finishes its piece, even if it gets no core for long. It
// must be awaited, because it uses the buffer itself and has no mapping that would keep the buffer valid.
void Communicator::AwaitLeave(int peer, int64_t begin_ns) const {
  const AccessGate& gate = header(peer).gate;
  const bool finishes = mesh()->reach(peer) == Reach::kSameProcess;
  while (gate.touching.load(std::memory_order_seq_cst)) {
    const int64_t waited_ns = MonotonicNanoseconds() - begin_ns;
    if (finishes || waited_ns < kMaxTouchNs) {
      ::sched_yield();
      continue;
    }
    const int64_t writer = gate.writer.load(std::memory_order_relaxed);
    // Without copies between processes, this rank cannot tell whether that process lives.
    if (writer == 0 || !copies_between_processes() || !IsReadableProcess(writer)) return;
    if (waited_ns > timeout_ms() * 1'000'000) {
      return Warn(
          "rank {}: rank {} (process {}) is stopped while it writes a piece of this rank's buffers: end "
          "that process before the buffers are freed or used again",
          rank(), peer, writer);
    }
    std::this_thread::sleep_for(kLookAgain);
  }
}

void Communicator::Fail(ErrorKind kind, const std::string& message) {
  {
    const std::lock_guard lock(failure_mutex_);
    if (async_error() != ncclSuccess) return;
    failure_ = message;
    async_error_.store(ToNcclResult(kind), std::memory_order_release);
  }
  Warn("rank {}: {}", rank(), message);
  CutConnections();
}

void Communicator::Close() {
  planner_->Finalize();
  if (profiler_ != nullptr) profiler_->Finalize();
}

ncclResult_t Communicator::health() const {
  if (async_error() != ncclSuccess) return async_error();
  return interrupted() ? ncclRemoteError : ncclSuccess;
}

std::string Communicator::failure() const {
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

void Communicator::WaitForLaunches() {
  std::shared_ptr<const Completion> last;
  {
    const std::lock_guard lock(launch_mutex_);
    last = last_launch_.completion;
  }
  if (last != nullptr) last->Wait();
}

void Communicator::Interrupt() {
  interrupted_.store(true, std::memory_order_release);
  if (!parts_.segments.empty()) parts_.segments[static_cast<size_t>(rank())]->WakeSleepers();
}

uint64_t Communicator::receive_bytes() const {
  return parts_.segments.empty() ? 0 : parts_.segments[static_cast<size_t>(rank())]->bytes();
}

void Communicator::Abort() {
  aborted_.store(true, std::memory_order_release);
  CutConnections();
  if (!parts_.segments.empty()) parts_.segments[static_cast<size_t>(rank())]->WakeSleepers();
}

}  // namespace dynamiccl::hostccl
