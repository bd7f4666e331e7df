// SPDX-License-Identifier: Apache-2.0
// The plans that a communicator keeps for small calls which a program repeats. A repeated call is not planned
// again and allocates no memory.
#pragma once

#include <array>
#include <cstddef>

#include "src/collective/collective.h"
#include "src/collective/collective_config.h"
#include "src/collective/data_type.h"
#include "src/collective/reduce_op.h"
#include "src/hostccl/algorithms/channel_work.h"
#include "src/hostccl/reduce_kernels/reduce_kernel.h"
#include "src/transport/segment.h"

namespace dynamiccl::hostccl {

// The values by which a repeated call finds its plan: two calls of a communicator share a plan if these
// values are equal. Buffers and streams are not among them. The data of such calls travel with the
// announcement, so it does not matter where the buffers lie.
struct RepeatedCall {
  Collective collective = Collective::kAllReduce;
  DataType data_type = DataType::kFloat32;  // as planned: int8 for data that are only moved
  ReduceOp op = ReduceOp::kSum;
  size_t count = 0;  // number of elements of data_type; 0: this is no call

  friend bool operator==(const RepeatedCall&, const RepeatedCall&) = default;
};

// A call and how it runs. All members but `may_spin` and `may_run_inline` are equal on all ranks.
struct CachedPlan {
  RepeatedCall call;
  CollectiveConfig config;
  size_t chunk_bytes = 0;
  Reduction reduction;
  // The elements of each block that each channel carries. Only the first `n_shares` channels carry any
  // elements.
  std::array<Chunk, kMaxChannels> shares;
  int n_shares = 0;
  // True if each rank has a core of its own. A waiting rank then spins before it yields.
  bool may_spin = false;
  // True if the calling thread may run the call itself (docs/small_messages.md).
  bool may_run_inline = false;
};

// The latest plans of one communicator, as a direct-mapped cache: a new plan replaces the one that was in its
// place. Only the thread that issues the communicator's calls may use it.
class PlanCache {
 public:
  // Returns the plan of the call, or null if there is none. The pointer is valid until the next Keep.
  const CachedPlan* Find(const RepeatedCall& call) const {
    const CachedPlan& plan = plans_[Place(call)];
    return plan.call == call && call.count > 0 ? &plan : nullptr;
  }
  const CachedPlan& Keep(const CachedPlan& plan) {
    ++kept_;
    return plans_[Place(plan.call)] = plan;
  }
  // Counts a call that ran by its cached plan.
  void NoteRun() { ++runs_; }

  // For tests: these return how many plans were made, and how many calls ran by a cached plan.
  size_t kept() const { return kept_; }
  size_t runs() const { return runs_; }

 private:
  // Number of places for plans. Programs alternate between only a few small calls.
  static constexpr size_t kPlans = 16;

  // Returns the place of a call's plan. The multiplicative hash (Knuth, TAOCP volume 3, 6.4) suits counts,
  // which are mostly powers of two.
  static size_t Place(const RepeatedCall& call) {
    constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
    const auto kind = static_cast<uint64_t>(call.collective) | static_cast<uint64_t>(call.data_type) << 8 |
                      static_cast<uint64_t>(call.op) << 16;
    return ((call.count ^ kind << 32) * kGolden) >> 60;
  }

  std::array<CachedPlan, kPlans> plans_;
  size_t kept_ = 0;
  size_t runs_ = 0;
};

}  // namespace dynamiccl::hostccl
