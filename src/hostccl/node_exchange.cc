// SPDX-License-Identifier: Apache-2.0
// The announcements, mappings and gates of a node's ranks. See node_exchange.h for the sequence of calls and
// src/transport/buffer_board.h for the shared memory.
#include "src/hostccl/node_exchange.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "src/base/clock.h"
#include "src/hostccl/communicator.h"

namespace dynamiccl::hostccl {
namespace {

// In bytes: the pieces of all members together, half of a second-level cache of 2 MiB. One piece has at most
// 128 KiB, the size at which the system's copies between processes cost least for each byte.
constexpr size_t kCopiedBytes = size_t{1} << 20;
constexpr size_t kMaxCopiedPiece = size_t{128} << 10;
constexpr size_t kMinCopiedPiece = size_t{16} << 10;
// In bytes: a piece of mapped memory, which needs no copy. Pieces limit how long a peer that gives up must
// wait, and let the work overlap with the transfers on emulated links.
constexpr size_t kMappedPiece = size_t{256} << 10;
// In bytes: the most that a member reads from all parcels together. Every member sums all parcels itself, and
// this number of bytes still fits in the first-level caches.
constexpr size_t kMaxCarried = size_t{64} << 10;
// Number of announcements between two searches for mappings whose owners have freed the memory.
constexpr uint64_t kDropEvery = 64;

}  // namespace

NodeExchange::NodeExchange(Communicator& communicator, int channel, std::vector<NodeMember> members,
                           bool one_host, Scratch& scratch)
    : communicator_(communicator),
      process_(::getpid()),
      channel_(channel),
      members_(std::move(members)),
      one_host_(one_host),
      shaped_(std::any_of(members_.begin(), members_.end(),
                          [](const NodeMember& member) { return member.incoming != nullptr; })),
      scratch_(scratch),
      reached_(members_.size()),
      carried_(members_.size()) {
  const auto own = std::find_if(members_.begin(), members_.end(),
                                [&](const NodeMember& member) { return member.rank == communicator.rank(); });
  self_ = static_cast<int>(own - members_.begin());
}

bool NodeExchange::Until::Advance() {
  const bool waits = arrival_ns_ > 0 && arrival_ns_ > MonotonicNanoseconds();
  next_arrival_ns_ = waits ? arrival_ns_ : kNotPosted;
  return !waits && (node_.*condition_)(arrival_ns_);
}

void NodeExchange::RingPeers() {
  for (const NodeMember& member : members_) {
    if (member.rank != communicator_.rank()) member.header->doorbell.Ring();
  }
}

NodeExchange::Until NodeExchange::Announce(const OwnBuffers& own) {
  BufferBoard& mine = board(static_cast<size_t>(self_));
  mine.send = DescribeBuffer(own.send, own.send_bytes);
  mine.recv = DescribeBuffer(own.recv, own.recv_bytes);
  if (own.multiplier) mine.multiplier = std::bit_cast<uint64_t>(own.multiplier->bytes);
  PostAnnouncement();
  return Announced();
}

void NodeExchange::PostAnnouncement() {
  board(static_cast<size_t>(self_)).announced.store(++step_, std::memory_order_release);
  RingPeers();
}

bool NodeExchange::AllAnnounced() const {
  for (size_t member = 0; member < members_.size(); ++member) {
    if (board(member).announced.load(std::memory_order_acquire) < step_) return false;
  }
  return true;
}

bool NodeExchange::PollAnnounced(int64_t /*arrival_ns*/) {
  if (!one_host_) return true;
  if (!AllAnnounced()) return false;
  if (reached_step_ != step_) ReachAll();
  return !failed_;
}

bool NodeExchange::Carries(size_t bytes) const {
  return one_host_ && bytes <= kParcelBytes && bytes * members_.size() <= kMaxCarried;
}

void NodeExchange::PostParcel(const std::optional<ElementValue>& multiplier) {
  Parcel& mine = parcel(static_cast<size_t>(self_), ++step_);
  if (multiplier) mine.multiplier = std::bit_cast<uint64_t>(multiplier->bytes);
  mine.announced.store(step_, std::memory_order_release);
}

// Comparing for equality is enough. A member overwrites a parcel two announcements later, and cannot make
// that announcement before this rank has made the next one.
bool NodeExchange::AllCarried() const {
  for (size_t member = 0; member < members_.size(); ++member) {
    if (parcel(member, step_).announced.load(std::memory_order_acquire) != step_) return false;
  }
  return true;
}

NodeExchange::Until NodeExchange::Carry(const std::optional<ElementValue>& multiplier) {
  PostParcel(multiplier);
  RingPeers();
  return {*this, &NodeExchange::PollCarried};
}

std::span<const std::byte* const> NodeExchange::Carried(size_t offset) {
  for (size_t member = 0; member < members_.size(); ++member) {
    carried_[member] = parcel(member, step_).data + offset;
  }
  return carried_;
}

ElementValue NodeExchange::CarriedMultiplier(int member) const {
  const uint64_t bits = parcel(static_cast<size_t>(member), step_).multiplier;
  return {std::bit_cast<decltype(ElementValue::bytes)>(bits)};
}

// All members see the same announcements, so all come to the same decision on whether they can reach each
// other's memory.
void NodeExchange::ReachAll() {
  reached_step_ = step_;
  PeerBuffers& buffers = communicator_.peer_buffers();
  if (step_ % kDropEvery == 0) buffers.DropFreed();
  const BufferBoard& mine = board(static_cast<size_t>(self_));
  bool one_process = true;
  bool all_shared = true;
  for (size_t member = 0; member < members_.size(); ++member) {
    const BufferBoard& announced = board(member);
    one_process &= announced.send.process == mine.send.process;
    all_shared &= announced.send.bytes == 0 || announced.send.is_shared();
    all_shared &= announced.recv.bytes == 0 || announced.recv.is_shared();
  }
  direct_ = one_process || all_shared || communicator_.copies_between_processes();
  copies_ = false;
  for (size_t member = 0; direct_ && member < members_.size(); ++member) Reach(member);
}

void NodeExchange::Reach(size_t member) {
  Reached& reached = reached_[member];
  reached.send_ref = board(member).send;
  reached.recv_ref = board(member).recv;
  reached.send = Map(reached.send_ref);
  reached.recv = Map(reached.recv_ref);
  const bool unmapped = (reached.send == nullptr && reached.send_ref.bytes > 0) ||
                        (reached.recv == nullptr && reached.recv_ref.bytes > 0);
  copies_ |= unmapped;
}

std::byte* NodeExchange::Map(const BufferRef& ref) {
  if (ref.bytes == 0) return nullptr;
  if (!ref.is_shared() && ref.process != board(static_cast<size_t>(self_)).send.process) return nullptr;
  auto mapped = communicator_.peer_buffers().Map(ref, Deadline::After(communicator_.timeout_ms()));
  if (mapped) return *mapped;
  Check(tl::unexpected(mapped.error()));
  return nullptr;
}

size_t NodeExchange::PieceBytes() const {
  if (!copies_) return kMappedPiece;
  return std::clamp(kCopiedBytes / members_.size(), kMinCopiedPiece, kMaxCopiedPiece);
}

int64_t NodeExchange::BookIncoming(size_t bytes) {
  int64_t arrival = 0;
  for (const NodeMember& member : members_) {
    if (member.incoming == nullptr) continue;
    arrival = std::max(arrival, member.incoming->Schedule(MonotonicNanoseconds(), bytes));
  }
  return arrival;
}

int64_t NodeExchange::BookOutgoing(size_t bytes) {
  int64_t arrival = 0;
  for (const NodeMember& member : members_) {
    if (member.outgoing == nullptr) continue;
    arrival = std::max(arrival, member.outgoing->Schedule(MonotonicNanoseconds(), bytes));
  }
  return arrival;
}

bool NodeExchange::AnyWithdrawn() const {
  return std::any_of(members_.begin(), members_.end(), [](const NodeMember& member) {
    return member.header->gate.withdrawn.load(std::memory_order_seq_cst);
  });
}

bool NodeExchange::PollEnter(int64_t /*arrival_ns*/) {
  own_gate().touching.store(true, std::memory_order_seq_cst);
  if (!AnyWithdrawn() && !failed_) return true;
  Leave();
  return false;
}

bool NodeExchange::PollEnterToWrite(int64_t arrival_ns) {
  own_gate().writer.store(process_, std::memory_order_relaxed);
  return PollEnter(arrival_ns);
}

void NodeExchange::Leave() {
  own_gate().touching.store(false, std::memory_order_release);
  own_gate().writer.store(0, std::memory_order_relaxed);
}

const std::byte* NodeExchange::Input(int member, size_t offset, size_t bytes) {
  const Reached& reached = reached_[static_cast<size_t>(member)];
  if (reached.send != nullptr) return reached.send + offset;
  auto& scratch = scratch_[static_cast<size_t>(member)];
  if (scratch == nullptr) scratch = std::make_unique<std::byte[]>(PieceBytes());
  Fetch(member, offset, scratch.get(), bytes);
  return scratch.get();
}

ElementValue NodeExchange::Multiplier(int member) const {
  return {std::bit_cast<decltype(ElementValue::bytes)>(board(static_cast<size_t>(member)).multiplier)};
}

std::byte* NodeExchange::Output(int member, size_t offset) const {
  std::byte* const recv = reached_[static_cast<size_t>(member)].recv;
  return recv == nullptr ? nullptr : recv + offset;
}

void NodeExchange::StoreUnmapped(size_t offset, const std::byte* from, size_t bytes) {
  for (const Reached& reached : reached_) {
    if (reached.recv == nullptr) Check(WritePeerMemory(reached.recv_ref, offset, from, bytes));
  }
}

void NodeExchange::Fetch(int member, size_t offset, std::byte* to, size_t bytes) {
  Check(ReadPeerMemory(reached_[static_cast<size_t>(member)].send_ref, offset, to, bytes));
}

bool NodeExchange::PollFinish(int64_t /*arrival_ns*/) {
  if (!one_host_) return true;
  if (failed_) return false;
  if (finished_step_ != step_) {
    finished_step_ = step_;
    board(static_cast<size_t>(self_)).finished.store(step_, std::memory_order_release);
    RingPeers();
  }
  for (size_t member = 0; member < members_.size(); ++member) {
    if (board(member).finished.load(std::memory_order_acquire) < step_) return false;
  }
  return true;
}

void NodeExchange::Check(const Status& status) {
  if (status || failed_) return;
  failed_ = true;
  communicator_.Fail(status.error().kind, status.error().message);
}

}  // namespace dynamiccl::hostccl
