// SPDX-License-Identifier: Apache-2.0
// The states that the structure LSTM of one communicator has been in, and where calls led from each of them.
//
// A job repeats its calls, and a state consists of integers. After some hundred calls of a repeated step the
// network returns, bit for bit, to an earlier state, and from then on each call leads from a known state to a
// known one. An answer found here was computed once, so the memory changes no answer. It only makes answers
// cheaper: one cache line is read instead of all weights.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "src/collective/collective_call.h"
#include "src/collective/role.h"
#include "src/fingerprint/call_token.h"
#include "src/policy/structure_kernels.h"

namespace dynamiccl {

// The structure LSTM's answer about the next call.
struct RecognisedStructure {
  // The role of the next call, for each collective that the next call may be.
  std::array<Role, kTunableCollectives> next_role{};
  Phase phase = Phase::kUnknown;
  ZeroStage stage = ZeroStage::kUnknown;
  // True if the last call was unexpected after the calls before it: the batch, the buckets or the program
  // changed.
  bool changed = false;
  // By how much that call was less likely than the likeliest one, in NextCall's units; 0 for the first call.
  uint16_t surprise = 0;

  friend bool operator==(const RecognisedStructure&, const RecognisedStructure&) = default;
};

// Everything on which the answers to later calls depend.
struct StructureState {
  LstmState network;
  CallTokenizer tokenizer;
  RecognisedStructure recognised;
  NextCall next;
  ZeroStage candidate = ZeroStage::kUnknown;
  int32_t candidate_calls = 0;

  friend bool operator==(const StructureState&, const StructureState&) = default;
};

// A memory of states for one communicator's structure agent, which owns it. One thread at a time, except for
// ReleaseMemory. It allocates when it is made and never later.
class VisitedStates {
 public:
  // Number of states in memory. If a state repeats only after more calls than this, every call is computed.
  // The memory is 1.3 MB, of which a job touches only what it visits: some hundred states for each kind of
  // training step.
  static constexpr size_t kStates = 4096;
  // After kStates calls that hardly repeated, this many calls are computed without a lookup.
  static constexpr uint64_t kPauseCalls = 16 * kStates;

  VisitedStates();
  VisitedStates(VisitedStates&&) = default;
  VisitedStates& operator=(VisitedStates&&) = default;

  // If the same call has left the present state before, moves to the state to which it led and returns the
  // stored answer. Otherwise returns null; the caller then computes the next state and reports it with
  // AddTransition.
  const RecognisedStructure* Follow(const CollectiveCall& call) {
    if (at_ == nullptr) return nullptr;
    for (const Step& step : at_->steps) {
      if (!step.IsOf(call)) continue;
      at_ = &places_[step.to];
      // The next call will read the steps of this place.
      __builtin_prefetch(at_);
      followed_ = true;
      ++hits_;
      return &step.answer;
    }
    return nullptr;
  }
  // Sets `state` to the present state if Follow has moved since the last AddTransition. `state` must be the
  // last argument of AddTransition, or the initial state.
  void Refresh(StructureState& state) const {
    if (followed_) state = at_->state;
  }
  // Reports that `call` led to `state`, after Follow returned null.
  void AddTransition(const CollectiveCall& call, const StructureState& state);
  // Forgets all states, but does not free their memory.
  void Forget();
  // Call this for communicators that are gone. It returns the memory of the states to the system, while the
  // addresses stay valid. Any thread may call it, even while another one is inside Follow or AddTransition:
  // that thread reads old values or zeros, and zero means "not known".
  void ReleaseMemory();

 private:
  using Index = uint16_t;
  // The place number for "not known" is 0, so that memory that was returned to the system leads nowhere.
  // places_[0] is never used.
  static constexpr Index kNowhere = 0;
  static_assert(kStates <= 0xffff);

  // A call that left a state: the values of its token, the state to which it leads, and the answer there.
  struct Step {
    uint64_t bytes = 0;
    uint64_t shape = 0;
    ReduceOp op = ReduceOp::kSum;
    RecognisedStructure answer;
    Index to = kNowhere;

    bool IsOf(const CollectiveCall& call) const {
      return bytes == call.bytes && shape == ShapeOf(call) && op == call.op && to != kNowhere;
    }
  };
  // One state. The two latest steps from it lie in one cache line.
  struct alignas(64) Place {
    Step steps[2];
    StructureState state;
    Index next_of_bucket = kNowhere;
  };
  static_assert(sizeof(Place::steps) <= 64);

  static uint64_t ShapeOf(const CollectiveCall& call) {
    return uint64_t{static_cast<uint32_t>(call.n_ranks)} << 32 | uint64_t{call.group_size} << 16 |
           uint64_t{static_cast<uint8_t>(call.collective)} << 8 | static_cast<uint8_t>(call.data_type);
  }
  Index Find(const StructureState& state) const;
  // Adds a state. If the memory is full, it is emptied first; returns kNowhere if that is not worthwhile now.
  Index Add(const StructureState& state);
  bool StartAgain();

  Place* at_ = nullptr;  // null: in no known state
  bool followed_ = false;
  uint64_t hits_ = 0;         // since places_ was last empty
  uint64_t pause_calls_ = 0;  // number of calls without a lookup that are left
  std::vector<Place> places_;
  std::vector<Index> buckets_;
};

}  // namespace dynamiccl
