// SPDX-License-Identifier: Apache-2.0
// How the ranks of one node work on each other's buffers: they announce them on boards in shared memory, read
// and write them piece by piece, and part when all have finished. One a communicator and channel.
//
//   co_await node.Announce(own);              // all have announced
//   for each piece:
//     co_await node.Enter(node.Book(bytes));  // the piece may be touched
//     ... node.Input(...), node.Store(...) ...
//     node.Leave();
//   co_await node.Finish();                   // nobody touches this rank's buffers any more
//
// A call of few bytes carries them with the announcement (Carries):
//   fill node.NextParcel(); co_await node.Carry(multiplier); read node.Carried()
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "src/base/status.h"
#include "src/hostccl/lane.h"
#include "src/hostccl/reduce_kernels/reduce_kernel.h"
#include "src/transport/peer_buffers.h"
#include "src/transport/segment.h"
#include "src/transport/shaped_link.h"

namespace dynamiccl::hostccl {

class Communicator;

// What the ranks of the node do with the buffers of a call.
struct OwnBuffers {
  const std::byte* send = nullptr;
  size_t send_bytes = 0;
  std::byte* recv = nullptr;
  size_t recv_bytes = 0;  // 0: peers do not write to it
  std::optional<ElementValue> multiplier;
};

// A rank of this node, itself included, in the order of ranks.
struct NodeMember {
  int rank = 0;
  SegmentHeader* header = nullptr;
  std::unique_ptr<ShapedLink> incoming;  // null: not shaped
  std::unique_ptr<ShapedLink> outgoing;
};

class NodeExchange {
 public:
  // By member: a piece of its private memory. Shared by the channels of a communicator, whose pieces are
  // worked on one after the other, so that it stays in the second-level cache.
  using Scratch = std::vector<std::unique_ptr<std::byte[]>>;

  // `members` has at least this rank; their segments are shared only if `one_host`. `communicator` owns the
  // object and `scratch`, which is as long as `members`.
  NodeExchange(Communicator& communicator, int channel, std::vector<NodeMember> members, bool one_host,
               Scratch& scratch);

  int size() const { return static_cast<int>(members_.size()); }
  int self() const { return self_; }
  int rank(int member) const { return members_[static_cast<size_t>(member)].rank; }

  // A wait of a lane on `ready`, which is asked again and again until it is true once.
  class Until final : public AwaitedInLane {
   public:
    using Condition = bool (NodeExchange::*)(int64_t arrival_ns);
    Until(NodeExchange& node, Condition condition, int64_t arrival_ns = 0)
        : node_(node), condition_(condition), arrival_ns_(arrival_ns) {}
    bool Advance() override;

   private:
    NodeExchange& node_;
    Condition condition_;
    int64_t arrival_ns_;
  };

  Until Announce(const OwnBuffers& own);

  // Whether a call in which each member gives `bytes` is carried; equal on all members.
  bool Carries(size_t bytes) const;
  // Where this rank puts the bytes of its next announcement.
  std::byte* NextParcel() const { return parcel(static_cast<size_t>(self_), step_ + 1).data; }
  // Announces what was put there; all have announced.
  Until Carry(const std::optional<ElementValue>& multiplier);
  // After Carry: what the members put there from `offset` on, in the order of ranks. Until the next
  // announcement; the span until the next call.
  std::span<const std::byte* const> Carried(size_t offset = 0);
  ElementValue CarriedMultiplier(int member) const;
  // Waits for the arrival of what was booked.
  Until Arrival(int64_t arrival_ns) { return {*this, &NodeExchange::PollArrived, arrival_ns}; }

  // For a second lane of the same call.
  Until Announced() { return {*this, &NodeExchange::PollAnnounced}; }
  // After Announce, equal on all members: every buffer that is needed can be reached. Where it is false,
  // nothing below may be used but Finish.
  bool direct() const { return direct_; }
  // Some member's memory is copied by the system, piece by piece, instead of being mapped.
  bool copies() const { return copies_; }
  // The communicator has failed: what was read may be anything.
  bool failed() const { return failed_; }
  // Bytes of a piece that is worth a step of its own and whose copies stay in the second-level cache.
  size_t PieceBytes() const;

  // Some link of this node is emulated.
  bool shaped() const { return shaped_; }
  // Books a message of `bytes` on the links from (to) all other members; when it arrives, 0: at once.
  int64_t BookIncoming(size_t bytes);
  int64_t BookOutgoing(size_t bytes);
  // The piece has arrived and peers' buffers may be touched until Leave, which must follow before the next
  // wait. Never true once a member gave up.
  Until Enter(int64_t arrival_ns) { return {*this, &NodeExchange::PollEnter, arrival_ns}; }
  void Leave();

  // `bytes` of a member's send buffer: in place where it is mapped, else copied to a scratch area of its own
  // that stays valid until Leave.
  const std::byte* Input(int member, size_t offset, size_t bytes);
  // Bits of the member's PreMulSum factor.
  ElementValue Multiplier(int member) const;
  // The member's receive buffer at `offset`; null where it is not mapped (then Store).
  std::byte* Output(int member, size_t offset) const;
  // Copies to every member whose receive buffer is not mapped.
  void StoreUnmapped(size_t offset, const std::byte* from, size_t bytes);
  // Copies from a member whose send buffer is not mapped to this rank's memory.
  void Fetch(int member, size_t offset, std::byte* to, size_t bytes);
  bool IsMapped(int member) const { return reached_[static_cast<size_t>(member)].send != nullptr; }

  // After the last piece; `arrival_ns` as of the last BookOutgoing.
  Until Finish(int64_t arrival_ns = 0) { return {*this, &NodeExchange::PollFinish, arrival_ns}; }

 private:
  // A member's buffers as this rank reaches them; null: by the system's copies.
  struct Reached {
    BufferRef send_ref;
    BufferRef recv_ref;
    std::byte* send = nullptr;
    std::byte* recv = nullptr;
  };

  BufferBoard& board(size_t member) const { return members_[member].header->boards[channel_]; }
  Parcel& parcel(size_t member, uint64_t step) const {
    return members_[member].header->parcels[channel_][step % kParcels];
  }
  void PostAnnouncement();
  bool AllAnnounced() const;
  bool PollAnnounced(int64_t arrival_ns);
  bool PollCarried(int64_t /*arrival_ns*/) { return AllAnnounced(); }
  bool PollArrived(int64_t /*arrival_ns*/) { return true; }
  bool PollEnter(int64_t arrival_ns);
  bool PollFinish(int64_t arrival_ns);
  void ReachAll();
  void Reach(size_t member);
  std::byte* Map(const BufferRef& ref);
  void RingPeers();
  void Check(const Status& status);

  Communicator& communicator_;
  const int channel_;
  const std::vector<NodeMember> members_;
  const bool one_host_;
  const bool shaped_;
  Scratch& scratch_;  // PieceBytes() each, made at first use
  int self_ = 0;
  std::vector<Reached> reached_;           // by member
  std::vector<const std::byte*> carried_;  // by member
  uint64_t step_ = 0;                      // announcements of this rank
  uint64_t reached_step_ = 0;
  uint64_t finished_step_ = 0;
  bool direct_ = false;
  bool copies_ = false;
  bool failed_ = false;
};

}  // namespace dynamiccl::hostccl
