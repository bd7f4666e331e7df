// SPDX-License-Identifier: Apache-2.0
// Finds a state's place in memory by a hash table, and from there the places to which calls led. See
// visited_states.h.
#include "src/policy/visited_states.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace dynamiccl {
namespace {

// Number of buckets, a power of two. When all places are used, a bucket has one state on average.
constexpr size_t kBuckets = VisitedStates::kStates;

// Hashes only the hidden state, because the cells nearly follow from it.
size_t BucketOf(const StructureState& state) {
  return XXH3_64bits(state.network.hidden, sizeof(state.network.hidden)) % kBuckets;
}

}  // namespace

VisitedStates::VisitedStates() : buckets_(kBuckets, kNowhere) {
  places_.reserve(kStates + 1);
  places_.emplace_back();
}

void VisitedStates::Forget() {
  at_ = nullptr;
  followed_ = false;
  hits_ = 0;
  pause_calls_ = 0;
  places_.resize(1);
  std::fill(buckets_.begin(), buckets_.end(), kNowhere);
}

void VisitedStates::ReleaseMemory() {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(places_.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(places_.data() + places_.capacity()) / page * page;
  // This is only advice: if the system refuses it, the memory stays in use and nothing else happens.
  if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

// Empties the table. If it had few hits, lookups pause for kPauseCalls calls.
bool VisitedStates::StartAgain() {
  const bool worth_it = hits_ >= kStates;
  Forget();
  if (!worth_it) pause_calls_ = kPauseCalls;
  return worth_it;
}

VisitedStates::Index VisitedStates::Find(const StructureState& state) const {
  for (Index i = buckets_[BucketOf(state)]; i != kNowhere; i = places_[i].next_of_bucket) {
    if (places_[i].state == state) return i;
  }
  return kNowhere;
}

VisitedStates::Index VisitedStates::Add(const StructureState& state) {
  if (places_.size() == kStates + 1 && !StartAgain()) return kNowhere;
  const auto added = static_cast<Index>(places_.size());
  Index& bucket = buckets_[BucketOf(state)];
  Place& place = places_.emplace_back();
  place.state = state;
  place.next_of_bucket = bucket;
  return bucket = added;
}

void VisitedStates::AddTransition(const CollectiveCall& call, const StructureState& state) {
  followed_ = false;
  if (pause_calls_ > 0) {
    --pause_calls_;
    return;
  }
  Index to = Find(state);
  if (to == kNowhere) to = Add(state);
  Place* const from = at_;
  at_ = to == kNowhere ? nullptr : &places_[to];
  if (from == nullptr || at_ == nullptr) return;
  from->steps[1] = from->steps[0];
  from->steps[0] = {call.bytes, ShapeOf(call), call.op, state.recognised, to};
}

}  // namespace dynamiccl
