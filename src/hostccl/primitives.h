// SPDX-License-Identifier: Apache-2.0
// The operations of which algorithms consist, with NCCL's names (device/primitives.h). Each primitive moves
// one chunk between local buffers and the connected peers. A lane waits for it with `co_await` and is
// suspended while a peer's data or credit is missing.
//
//   Send                to <- src                   RecvReduceSend      to <- src op from
//   CopySend            dst, to <- src              RecvReduceCopy      dst <- src op from
//   Recv                dst <- from                 RecvReduceCopySend  dst, to <- src op from
//   RecvCopySend        dst, to <- from
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/hostccl/lane.h"
#include "src/hostccl/reduce_kernels/reduce_kernel.h"
#include "src/transport/connection.h"

namespace dynamiccl::hostccl {

// The most peers that a primitive receives from or sends to: a tree node has at most three children, two on
// other nodes and one on its own.
inline constexpr size_t kMaxPeers = 3;

// Ranks from which or to which a primitive moves data; -1 for an unused place.
struct Peers {
  std::array<int, kMaxPeers> ranks{-1, -1, -1};
};

// The chunk of the primitive in progress: out = src op (data received from `from`). The result goes to `dst`
// and to the peers in `to`.
struct ChunkStep {
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  size_t count = 0;  // elements
  bool receives = false;
  bool sends = false;
  bool is_final = false;   // this step applies the operator's division
  bool is_result = false;  // `src` is no input of a reduction, so PreMulSum does not scale it
};

// Base class of the three protocols (protocols/). A lane owns the object and has at most one primitive in
// progress. One thread at a time may use it. After a failure a wait never ends; the launch notices the
// failure and drops the lane.
class Primitives : public Awaited {
 public:
  // `channel` points to this channel's connections, indexed by peer. `chunk_bytes` is the call's chunk size;
  // with 0 the protocol's own size is used.
  Primitives(Connection* channel, const Reduction& reduction, size_t chunk_bytes)
      : channel_(channel), reduction_(reduction), chunk_bytes_(chunk_bytes) {}

  // Sets the peers of the following primitives. Do not call it while a primitive is in progress.
  void Connect(Peers from, Peers to);

  struct Awaiter {
    Primitives& primitives;
    bool await_ready() { return primitives.Advance(); }
    void await_suspend(Lane::Handle lane) const { lane.promise().awaited = &primitives; }
    void await_resume() const {}
  };

  Awaiter Send(const std::byte* src, size_t count) { return Start({src, nullptr, count, false, true}); }
  // Sends finished sums, or data that are only passed on. The operator's factor is not applied.
  Awaiter SendResult(const std::byte* src, size_t count) {
    return Start({src, nullptr, count, false, true, false, true});
  }
  Awaiter CopySend(const std::byte* src, std::byte* dst, size_t count) {
    return Start({src, dst, count, false, true, false, true});
  }
  Awaiter Recv(std::byte* dst, size_t count) { return Start({nullptr, dst, count, true, false}); }
  Awaiter RecvCopySend(std::byte* dst, size_t count) { return Start({nullptr, dst, count, true, true}); }
  // `is_result` says that `src` is a sum of several ranks. Operators that multiply each rank's data by a
  // factor (ncclRedOpCreatePreMulSum) have been applied to it already and are not applied again.
  Awaiter RecvReduceSend(const std::byte* src, size_t count, bool is_result = false) {
    return Start({src, nullptr, count, true, true, false, is_result});
  }
  // These two primitives end a reduction, so they apply the operator's division.
  Awaiter RecvReduceCopy(const std::byte* src, std::byte* dst, size_t count) {
    return Start({src, dst, count, true, false, true});
  }
  Awaiter RecvReduceCopySend(const std::byte* src, std::byte* dst, size_t count, bool is_result = false) {
    return Start({src, dst, count, true, true, true, is_result});
  }

  // Like RecvReduceCopy, but `step` says whether the sum ends here and whether `src` is a partial sum.
  Awaiter RecvReducePartial(ChunkStep step) {
    step.receives = true;
    return Start(step);
  }

  // Returns the largest chunk of this call, in elements.
  size_t MaxChunk() const;

  const Reduction& reduction() const { return reduction_; }
  size_t element_bytes() const { return reduction_.element_bytes; }

 protected:
  // Begins the primitive in step_. If the primitive has no peers on one side, that side is skipped: the leaf
  // of a tree sends up and receives from no peer.
  virtual void OnStart() = 0;
  // Returns MostChunkBytes (chunk_size.h) of the protocol.
  virtual size_t ChunkCeilingBytes() const = 0;
  // Returns the number of bytes of which every chunk is a multiple.
  virtual size_t ChunkGrainBytes() const = 0;

  // Returns the factor that applies to `src`, this rank's input; null if there is none.
  const ElementValue* SourceMultiplier() const {
    return reduction_.multiplier && !step_.is_result ? &*reduction_.multiplier : nullptr;
  }

  Connection* const channel_;
  const Reduction reduction_;
  const size_t chunk_bytes_;
  ChunkStep step_;
  std::array<Connection*, kMaxPeers> from_{};
  std::array<Connection*, kMaxPeers> to_{};

 private:
  Awaiter Start(const ChunkStep& step);
};

// The inputs and outputs of one pass of the reduction over a piece of a chunk.
struct PieceOperands {
  std::array<const std::byte*, kMaxPeers + 1> in{};
  std::array<const ElementValue*, kMaxPeers + 1> multipliers{};
  std::array<std::byte*, kMaxPeers + 1> out{};
  size_t n_in = 0;
  size_t n_out = 0;

  void AddInput(const std::byte* data, const ElementValue* multiplier = nullptr);
  void AddOutput(std::byte* data);
};

// Computes out[*] = ((in[0] op in[1]) op in[2]) op in[3], in one pass over memory.
void CombinePiece(const Reduction& reduction, const PieceOperands& operands, size_t count, bool is_final);

}  // namespace dynamiccl::hostccl
