// SPDX-License-Identifier: Apache-2.0
// The states that the structure LSTM of one communicator has been in, and where calls led from them.
//
// A job repeats its calls, and a state is integers. After some hundred calls of a repeated step the network
// is back, bit for bit, in a state that it was in before, and from then on each call leads from a known state
// to a known one. What is found here was computed once, so it changes no answer. It changes only what an
// answer costs: one cache line of memory instead of all weights.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "src/collective/collective_call.h"
#include "src/collective/role.h"
#include "src/fingerprint/call_token.h"
#include "src/policy/structure_kernels.h"

namespace dynamiccl {

// Holds what is recognised after a call, about the next one.
struct RecognisedStructure {
  // Indexed by Collective, this is the role of the next call if it is that collective.
  std::array<Role, kTunableCollectives> next_role{};
  Phase phase = Phase::kUnknown;
  ZeroStage stage = ZeroStage::kUnknown;
  // Whether the call just seen was unexpected after the calls before it: batch, buckets or program changed.
  bool changed = false;
  // How much less likely that call was than the likeliest, in NextCall's units; 0 for the first call.
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
// GiveMemoryBack. It allocates when it is made and never later.
class VisitedStates {
 public:
  // The memory holds this many states. A step with more calls between two equal states is computed call by
  // call. The memory is 1.3 MB, of which a job touches what it visits: some hundred states for each kind of
  // step.
  static constexpr size_t kStates = 4096;
  // Calls during which nothing is looked up, after `kStates` calls that hardly ever repeated.
  static constexpr uint64_t kRest = 16 * kStates;

  VisitedStates();
  VisitedStates(VisitedStates&&) = default;
  VisitedStates& operator=(VisitedStates&&) = default;

  // Goes where the same call led from here before, and returns its answer. Null when that is not known: the
  // caller then computes the next state and reports it with Arrived.
  const RecognisedStructure* Follow(const CollectiveCall& call) {
    if (at_ == nullptr) return nullptr;
    for (const Step& step : at_->steps) {
      if (!step.IsOf(call)) continue;
      at_ = &places_[step.to];
      // The next call will look at this place's steps.
      __builtin_prefetch(at_);
      followed_ = true;
      ++hits_;
      return &step.answer;
    }
    return nullptr;
  }
  // Brings `state` up to date when calls were followed since. `state` is what Arrived was given last, or
  // initial.
  void Refresh(StructureState& state) const {
    if (followed_) state = at_->state;
  }
  // Reports that `call` led to `state` from where Follow did not know it.
  void Arrived(const CollectiveCall& call, const StructureState& state);
  // Makes it as new, in the same memory.
  void Forget();
  // To be called for communicators that are gone: gives the memory of the states back to the system, while
  // the addresses stay valid. Any thread, also beside one that is inside Follow or Arrived: that one reads
  // old values or zeros, and zero means "not known".
  void GiveMemoryBack();

 private:
  using Index = uint16_t;
  // 0, so that memory which was given back leads nowhere. places_[0] is never used.
  static constexpr Index kNowhere = 0;
  static_assert(kStates <= 0xffff);

  // A call that left a state: what its token is made of, where it leads, and the answer there.
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
  // Starts again when the memory is full. Returns kNowhere when that is not worth it now.
  Index Add(const StructureState& state);
  bool StartAgain();

  Place* at_ = nullptr;  // null: in no known state
  bool followed_ = false;
  uint64_t hits_ = 0;  // since places_ was last empty
  uint64_t rest_ = 0;  // calls for which nothing is looked up any more
  std::vector<Place> places_;
  std::vector<Index> buckets_;
};

}  // namespace dynamiccl
