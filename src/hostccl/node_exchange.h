// SPDX-License-Identifier: Apache-2.0
// Lets the ranks of one node work on each other's buffers. They announce the buffers on boards in shared
// memory, read and write the buffers piece by piece, and end the call when all have finished. There is one
// exchange for each communicator and channel.
//
//   co_await node.Announce(own);              // all have announced
//   for each piece:
//     co_await node.Enter(node.BookIncoming(bytes));  // the piece may be read
//     ... node.Input(...), node.Output(...) ...
//     node.Leave();
//   co_await node.Finish();                   // nobody touches this rank's buffers any more
//
// A small call sends its data with the announcement instead (see Carries):
//
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

// The buffers of a call that the other ranks of the node may read or write.
struct OwnBuffers {
  const std::byte* send = nullptr;
  size_t send_bytes = 0;
  std::byte* recv = nullptr;
  size_t recv_bytes = 0;  // 0: peers do not write to this buffer
  std::optional<ElementValue> multiplier;
};

// A rank of this node. The list of members contains this rank too, and is in the order of ranks.
struct NodeMember {
  int rank = 0;
  SegmentHeader* header = nullptr;
  std::unique_ptr<ShapedLink> incoming;  // null: not shaped
  std::unique_ptr<ShapedLink> outgoing;
};

// The communicator owns the exchange, and the lanes of the launch in progress use it, on that launch's
// thread. If a peer's buffer cannot be reached, the communicator fails, and the waits below never end; the
// launch then drops the lanes.
//
// It has more than 30 functions because all of them refer to the current announcement. The announcement's
// number decides which boards, parcels and mappings are valid.
class NodeExchange {
 public:
  // One buffer for each member, for a piece of memory that has to be copied. The channels of a communicator
  // share the buffers and work on their pieces one after another, so that the buffers stay in the
  // second-level cache.
  using Scratch = std::vector<std::unique_ptr<std::byte[]>>;

  // `members` contains at least this rank. Their segments are shared only if `one_host`. `communicator` owns
  // this object and `scratch`, which has a buffer for each member.
  NodeExchange(Communicator& communicator, int channel, std::vector<NodeMember> members, bool one_host,
               Scratch& scratch);

  int size() const { return static_cast<int>(members_.size()); }
  int self() const { return self_; }
  int rank(int member) const { return members_[static_cast<size_t>(member)].rank; }

  // A lane waits for this object. `ready` is called repeatedly until it returns true, but never before
  // `arrival_ns`.
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

  // Announces this rank's buffers, and waits until all members have announced theirs.
  Until Announce(const OwnBuffers& own);

  // Returns true if a call to which each member contributes `bytes` sends its data with the announcement. The
  // result is equal on all members.
  bool Carries(size_t bytes) const;
  // Returns the memory for the data of this rank's next announcement.
  std::byte* NextParcel() const { return parcel(static_cast<size_t>(self_), step_ + 1).data; }
  // Announces the data at NextParcel, without waiting. The caller must call RingPeers soon, to wake peers
  // that sleep.
  void PostParcel(const std::optional<ElementValue>& multiplier);
  // Wakes the members that sleep. It is a separate function because its fence waits until all stores have
  // left the core. The caller can look for the peers' parcels before that.
  void RingPeers();
  // After PostParcel: returns true once all members have announced their data.
  bool AllCarried() const;
  // Announces the data at NextParcel, and waits until all members have announced theirs.
  Until Carry(const std::optional<ElementValue>& multiplier);
  // After Carry: returns the members' parcels from `offset` on, in the order of ranks. The data are valid
  // until the next announcement, the span until the next call of this function.
  std::span<const std::byte* const> Carried(size_t offset = 0);
  ElementValue CarriedMultiplier(int member) const;
  // Waits until `arrival_ns`, the arrival time that a booking returned.
  Until Arrival(int64_t arrival_ns) { return {*this, &NodeExchange::PollArrived, arrival_ns}; }

  // Waits for the same as Announce. For a second lane of the same call.
  Until Announced() { return {*this, &NodeExchange::PollAnnounced}; }
  // After Announce: returns true if every needed buffer can be reached; equal on all members. If it is false,
  // only Finish may be called.
  bool direct() const { return direct_; }
  // Returns true if some member's memory is not mapped, so that the system copies it piece by piece.
  bool copies() const { return copies_; }
  // Returns true if the communicator has failed. Data that were read may then be invalid.
  bool failed() const { return failed_; }
  // Returns the bytes of a piece. A piece is large enough to be worth a step of its own, and the copies of
  // the pieces stay in the second-level cache.
  size_t PieceBytes() const;

  // Returns true if some link between ranks of this node is emulated.
  bool shaped() const { return shaped_; }
  // These book a message of `bytes` on the links from, or to, all other members. They return the arrival of
  // the last message; 0 means at once.
  int64_t BookIncoming(size_t bytes);
  int64_t BookOutgoing(size_t bytes);
  // These wait until the piece has arrived and peers' buffers may be read, or read and written. The
  // access lasts until Leave, which must come before the lane's next wait. After a member gave up, the wait
  // never ends.
  Until Enter(int64_t arrival_ns) { return {*this, &NodeExchange::PollEnter, arrival_ns}; }
  Until EnterToWrite(int64_t arrival_ns) { return {*this, &NodeExchange::PollEnterToWrite, arrival_ns}; }
  // Ends the access to peers' buffers.
  void Leave();
  // Ends at once, unless the communicator has failed or a member has given up: then it never ends. Wait for
  // it before anything that was computed from peers' buffers is sent to a rank of another node. That rank
  // could otherwise finish the call with data of a peer that died before they were read, or that used its
  // buffer again because this rank had been stopped during the read (Communicator::WithdrawBuffers).
  Until Valid() { return {*this, &NodeExchange::PollValid}; }

  // Returns `bytes` of a member's send buffer: the buffer itself if it is mapped, else a copy in the member's
  // scratch buffer. The copy is valid until Leave.
  const std::byte* Input(int member, size_t offset, size_t bytes);
  // Returns the factor of the member's ncclRedOpCreatePreMulSum.
  ElementValue Multiplier(int member) const;
  // Returns the member's receive buffer at `offset`; null if it is not mapped. In that case use
  // StoreUnmapped.
  std::byte* Output(int member, size_t offset) const;
  // Copies these bytes to every member whose receive buffer is not mapped.
  void StoreUnmapped(size_t offset, const std::byte* from, size_t bytes);
  // Copies from a member's send buffer, which is not mapped, to this rank's memory.
  void Fetch(int member, size_t offset, std::byte* to, size_t bytes);
  bool IsMapped(int member) const { return reached_[static_cast<size_t>(member)].send != nullptr; }

  // Announces that this rank touches no peer's memory any more, and waits until all members have announced
  // the same. `arrival_ns` is the result of the last BookOutgoing.
  Until Finish(int64_t arrival_ns = 0) { return {*this, &NodeExchange::PollFinish, arrival_ns}; }

 private:
  // The buffers of a member at their addresses in this process. A null pointer means that the system has to
  // copy.
  struct Reached {
    BufferRef send_ref;
    BufferRef recv_ref;
    std::byte* send = nullptr;
    std::byte* recv = nullptr;
  };

  AccessGate& own_gate() const { return members_[static_cast<size_t>(self_)].header->gate; }
  // Returns a member's board for this channel.
  BufferBoard& board(size_t member) const { return members_[member].header->boards[channel_]; }
  Parcel& parcel(size_t member, uint64_t step) const {
    return members_[member].header->parcels[channel_][step % kParcels];
  }
  // Publishes this rank's next announcement and rings the peers' doorbells.
  void PostAnnouncement();
  bool AllAnnounced() const;
  bool AnyWithdrawn() const;
  // The conditions for which the waits above wait. PollAnnounced also maps the buffers once all members have
  // announced them.
  bool PollAnnounced(int64_t arrival_ns);
  bool PollCarried(int64_t /*arrival_ns*/) { return AllCarried(); }
  bool PollArrived(int64_t /*arrival_ns*/) { return true; }
  bool PollEnter(int64_t arrival_ns);
  bool PollEnterToWrite(int64_t arrival_ns);
  bool PollValid(int64_t /*arrival_ns*/) { return !failed_ && !AnyWithdrawn(); }
  bool PollFinish(int64_t arrival_ns);
  // Decides how to access each member's buffers: by their address, by a mapping, or by the system's copies.
  void ReachAll();
  void Reach(size_t member);
  std::byte* Map(const BufferRef& ref);
  // If `status` is an error, makes the communicator fail with it.
  void Check(const Status& status);

  Communicator& communicator_;
  const int64_t process_;  // id of this process
  const int channel_;
  const std::vector<NodeMember> members_;
  const bool one_host_;
  const bool shaped_;
  Scratch& scratch_;  // PieceBytes() each, allocated at first use
  int self_ = 0;
  std::vector<Reached> reached_;           // by member
  std::vector<const std::byte*> carried_;  // by member
  uint64_t step_ = 0;                      // number of announcements that this rank made
  uint64_t reached_step_ = 0;
  uint64_t finished_step_ = 0;
  bool direct_ = false;
  bool copies_ = false;
  bool failed_ = false;
};

}  // namespace dynamiccl::hostccl
