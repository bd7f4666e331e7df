// SPDX-License-Identifier: Apache-2.0
// The habits of a framework that does not exist: what each training technique needs on the wire (gradients
// summed, parts of parameters gathered, activations exchanged), with which collective, in which pieces and
// when, drawn apart from each other.
#pragma once

#include <random>
#include <vector>

#include "src/collective/collective_call.h"
#include "src/collective/role.h"
#include "traces/generators/model_shape.h"
#include "traces/generators/world_shape.h"

namespace dynamiccl::agents {

// What goes out at once. Modules are what a framework hooks: a weight with its bias.
enum class Pieces : uint8_t { kParameters, kModules, kBlocks, kChunks, kWhole };

// Which pieces share an ncclGroup, of those that go out one after the other. kEqual: those of one size.
enum class Grouping : uint8_t { kNone, kEqual, kCount, kAll };

// kCollective: AllReduce or ReduceScatter, AllGather. kEachOwner: one Reduce or Broadcast for each rank's
// part. kOneOwner: one for the piece, from or to the rank whose turn it is.
enum class Exchange : uint8_t { kCollective, kEachOwner, kOneOwner };

struct Traffic {
  Pieces pieces = Pieces::kBlocks;
  int64_t chunk = 1;          // elements, of kChunks
  bool exact_chunks = false;  // cut inside of parameters: all of one size
  Exchange exchange = Exchange::kCollective;
  DataType type = DataType::kFloat32;
  bool reversed = false;  // from the last block to the first
  Grouping grouping = Grouping::kNone;
  int group_pieces = 2;  // of kCount
};

// In which order the updated parameters come back. kKinds: alike parameters of all blocks together.
enum class Order : uint8_t { kBlocks, kReversed, kKinds, kLargestFirst };

struct ScalarHabit {
  enum class Moment : uint8_t { kForwardEnd, kBeforeUpdate, kAfterUpdate };
  Moment moment = Moment::kBeforeUpdate;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  int64_t elements = 1;
  int times = 1;  // one after the other: of so many groups of parameters
  Axis axis = Axis::kData;
};

struct InventedHabits {
  ZeroStage stage = ZeroStage::kStage0;
  WorldShape world;
  int blocks_together = 1;     // blocks of the model that are used as one
  bool head_is_apart = false;  // a block of its own that is used last; otherwise used with the embeddings
  int micro_steps = 1;

  Traffic gradients;
  Collective gradient_collective = Collective::kAllReduce;
  ReduceOp gradient_op = ReduceOp::kSum;
  bool each_pass = false;        // gradients are summed in every micro-step, not in the last alone
  bool after_backward = false;   // and only once the backward has ended
  bool replicas_at_end = false;  // with hybrid sharding: sums over replicas wait for the step's end

  Traffic parameters;              // stage 3: before use
  bool gather_in_backward = true;  // again
  int whole_blocks = 0;            // the last so many stay whole from forward to backward
  bool first_stays_whole = false;  // and the first
  int gathered_ahead = 0;          // in the backward, before a block's gradients
  int blocks_fetched = 1;          // at once: pieces are cut through all of them
  bool second_copies = false;      // with hybrid sharding: divided over all, but gathered in the backward
                                   // from a copy that a shard group has
  int64_t kept_elements = 0;       // parameters up to this stay whole and come back after the step

  Traffic updated;  // stages 1 and 2, and what stage 3 keeps: after the step
  Order updated_order = Order::kBlocks;
  bool updated_in_forward = false;  // each block's before its first use, in the gradients' pieces

  bool sends_parameters_first = false;  // before the first step, from rank 0
  bool sends_buffers = false;           // before each forward, from rank 0
  bool sends_used_map = false;          // after each backward
  int announced = 0;                    // small integers, from rank 0 before each step
  std::vector<ScalarHabit> scalars;

  // Tensor parallelism, by block.
  int activations_forward = 2;
  int activations_backward = 2;
  bool activations_split = false;  // AllGather and ReduceScatter in place of AllReduce
  bool recompute = false;
  bool sends_batch = false;
  int head_sums = 0;  // of a value for each token
  bool sums_shared_gradients = false;
  DataType activation_type = DataType::kFloat32;
  int64_t tokens = 0;
  int64_t activation_elements = 0;
};

InventedHabits DrawHabits(const ModelShape& model, std::mt19937_64& random);

// A stage that the calls can tell from the others: gradients of several micro-steps that are summed in each
// are partitioned (2), those that wait for the last are whole (1). Of a single micro-step nothing tells.
// Parameters that are gathered for the forward and stay until the step are stage 3's to one framework, stage
// 2's to another.
ZeroStage StageToTell(const InventedHabits& habits);

}  // namespace dynamiccl::agents
