// SPDX-License-Identifier: Apache-2.0
// What a communicator keeps of small calls that a program repeats, so that a repeated call is neither planned
// nor allocates memory.
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

// Two calls of a communicator share a plan if these values are equal. Buffers and streams are left out: the
// data of such calls travel with the announcement, so it does not matter where the buffers lie.
struct RepeatedCall {
  Collective collective = Collective::kAllReduce;
  DataType data_type = DataType::kFloat32;  // as planned: int8 for data that are only moved
  ReduceOp op = ReduceOp::kSum;
  size_t count = 0;  // in elements of data_type; 0 for no call

  friend bool operator==(const RepeatedCall&, const RepeatedCall&) = default;
};

// A call and what was decided for it. Equal on all ranks, but for `may_spin` and `may_run_inline`.
struct KeptPlan {
  RepeatedCall call;
  CollectiveConfig config;
  size_t chunk_bytes = 0;
  Reduction reduction;
  // The elements of each block that each channel carries. Only the first `n_shares` channels carry any.
  std::array<Chunk, kMaxChannels> shares;
  int n_shares = 0;
  // True if each rank has a core of its own. Waiting then spins before it yields.
  bool may_spin = false;
  // The calling thread may run the call (docs/small_messages.md).
  bool may_run_inline = false;
};

// The latest plans of one communicator. A direct-mapped cache: a new plan replaces the old one in its place.
// One thread at a time, the one that issues the communicator's calls.
class KeptPlans {
 public:
  // Returns the plan of the call, or null. It is valid until the next Keep.
  const KeptPlan* Find(const RepeatedCall& call) const {
    const KeptPlan& plan = plans_[Place(call)];
    return plan.call == call && call.count > 0 ? &plan : nullptr;
  }
  const KeptPlan& Keep(const KeptPlan& plan) {
    ++kept_;
    return plans_[Place(plan.call)] = plan;
  }
  // Counts a call that ran by a kept plan.
  void NoteRun() { ++runs_; }

  // Returns how many plans were made, and how many calls ran by one; for tests.
  size_t kept() const { return kept_; }
  size_t runs() const { return runs_; }

 private:
  // Programs alternate between a few small calls.
  static constexpr size_t kPlans = 16;

  // Multiplicative hash (Knuth, TAOCP volume 3, 6.4), because counts are mostly powers of two.
  static size_t Place(const RepeatedCall& call) {
    constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
    const auto kind = static_cast<uint64_t>(call.collective) | static_cast<uint64_t>(call.data_type) << 8 |
                      static_cast<uint64_t>(call.op) << 16;
    return ((call.count ^ kind << 32) * kGolden) >> 60;
  }

  std::array<KeptPlan, kPlans> plans_;
  size_t kept_ = 0;
  size_t runs_ = 0;
};

}  // namespace dynamiccl::hostccl
