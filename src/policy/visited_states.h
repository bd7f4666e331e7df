// SPDX-License-Identifier: Apache-2.0
// The states that the structure LSTM of one communicator has been in, and where calls led from them. A job
// repeats its calls, and a state is integers: after some hundred calls of a repeated step the network is
// back, bit for bit, where it was before, and from then on a call leads from a known state to a known one.
// What is found here was computed once, so it changes no answer, only what the answer costs: a line of memory
// instead of the weights.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "src/collective/collective_call.h"
#include "src/collective/role.h"
#include "src/fingerprint/call_token.h"
#include "src/policy/structure_kernels.h"

namespace dynamiccl {

// What is recognised after a call, about the next one.
struct RecognisedStructure {
  std::array<Role, kTunableCollectives> next_role{};  // by Collective: its role if the next call is one
  Phase phase = Phase::kUnknown;
  ZeroStage stage = ZeroStage::kUnknown;
  // The call just seen is not one that the calls before it let expect: batch, buckets or program changed.
  bool changed = false;
  // How much less likely it was than the likeliest, as NextCall says; 0 for the first call.
  uint16_t surprise = 0;

  friend bool operator==(const RecognisedStructure&, const RecognisedStructure&) = default;
};

// All that answers of later calls depend on.
struct StructureState {
  LstmState network;
  CallTokenizer tokenizer;
  RecognisedStructure recognised;
  NextCall next;
  ZeroStage candidate = ZeroStage::kUnknown;
  int32_t candidate_calls = 0;

  friend bool operator==(const StructureState&, const StructureState&) = default;
};

// One thread at a time. Allocates when it is made, and never later.
class VisitedStates {
 public:
  // A step of more calls than this between two equal states is computed call by call. 1.3 MB, of which a job
  // touches what it visits: some hundred states for each kind of step.
  static constexpr size_t kStates = 4096;
  // Calls for which nothing is looked for after `kStates` calls that hardly ever repeated.
  static constexpr uint64_t kRest = 16 * kStates;

  VisitedStates();
  VisitedStates(VisitedStates&&) = default;
  VisitedStates& operator=(VisitedStates&&) = default;

  // Goes where the same call led from here before; its answer. Null: it is not known. Then the caller
  // computes the next state from Current, and says where it arrived.
  const RecognisedStructure* Follow(const CollectiveCall& call) {
    if (at_ == nullptr) return nullptr;
    for (const Step& step : at_->steps) {
      if (!step.IsOf(call)) continue;
      at_ = &places_[step.to];
      // Its steps, for the next call.
      __builtin_prefetch(at_);
      followed_ = true;
      ++hits_;
      return &step.answer;
    }
    return nullptr;
  }
  // `state` is what Arrived was given last, or initial: brought up to date where calls were followed since.
  void Refresh(StructureState& state) const {
    if (followed_) state = at_->state;
  }
  // `call` led to `state` from where Follow did not know it.
  void Arrived(const CollectiveCall& call, const StructureState& state);
  // As new, in the same memory.
  void Forget();
  // For communicators that are gone: the system gets the memory of the states back, and the addresses stay.
  // Any thread, also beside one that is inside Follow or Arrived: what that reads is old or zero, and zero is
  // "not known".
  void GiveMemoryBack();

 private:
  using Index = uint16_t;
  // Zero, so that memory which was given back holds no way on. places_[0] is never used.
  static constexpr Index kNowhere = 0;
  static_assert(kStates <= 0xffff);

  // What the token is made of, where it leads, and what the answer is there.
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
  // The last two ways on from a state lie in one line.
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
  // Starts again when it is full; kNowhere: that is not worth it now.
  Index Add(const StructureState& state);
  bool StartAgain();

  Place* at_ = nullptr;  // null: nowhere known
  bool followed_ = false;
  uint64_t hits_ = 0;  // since places_ was last empty
  uint64_t rest_ = 0;  // calls
  std::vector<Place> places_;
  std::vector<Index> buckets_;
};

}  // namespace dynamiccl
