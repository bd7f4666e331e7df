// SPDX-License-Identifier: Apache-2.0
// Runs of frameworks that do not exist, as additional training data. A network that knows eleven frameworks
// only by their patterns fails on a twelfth. A network that has seen each role in many orders, sizes and
// collectives generalises better (domain randomisation: Tobin et al., IROS 2017).
#pragma once

#include <random>
#include <vector>

#include "src/collective/collective_call.h"
#include "src/collective/role.h"
#include "traces/generators/framework_generator.h"
#include "traces/generators/model_shape.h"
#include "traces/generators/world_shape.h"

namespace dynamiccl::agents {

// The habits of a framework that does not exist. Each training technique requires communication: gradients
// are summed, partitioned parameters are gathered, activations are exchanged. The collective, the pieces and
// the time of this communication are drawn independently for each technique.

// The pieces of data that one call transfers. A module is the unit to which a framework attaches a hook: a
// weight with its bias. kChunks cuts after a fixed number of elements, kWhole does not cut.
enum class Pieces : uint8_t { kParameters, kModules, kBlocks, kChunks, kWhole };

// Selects which consecutive pieces share an ncclGroup: none, pieces of equal size, a fixed number of pieces,
// or all.
enum class Grouping : uint8_t { kNone, kEqual, kCount, kAll };

// Selects how a piece is summed or gathered. With kCollective it is summed by AllReduce or ReduceScatter and
// gathered by AllGather. With kEachOwner there is one Reduce or Broadcast for each rank's part. With
// kOneOwner there is one Reduce or Broadcast for the whole piece, to or from one rank; the ranks take turns.
enum class Exchange : uint8_t { kCollective, kEachOwner, kOneOwner };

// Describes how one training technique transfers its data.
struct Traffic {
  Pieces pieces = Pieces::kBlocks;
  // Number of elements in a chunk (Pieces::kChunks).
  int64_t chunk = 1;
  // True if chunks are also cut inside parameters, so that all chunks have the same size.
  bool exact_chunks = false;
  Exchange exchange = Exchange::kCollective;
  DataType type = DataType::kFloat32;
  // True if the data are transferred from the last block to the first.
  bool reversed = false;
  Grouping grouping = Grouping::kNone;
  // Number of pieces in a group (Grouping::kCount).
  int group_pieces = 2;
};

// The order in which updated parameters are gathered. kKinds gathers corresponding parameters of all blocks
// together.
enum class Order : uint8_t { kBlocks, kReversed, kKinds, kLargestFirst };

// A small AllReduce that a framework performs in each step, for example of the loss or of an overflow flag.
struct ScalarHabit {
  // The place of the call in a step.
  enum class Moment : uint8_t { kForwardEnd, kBeforeUpdate, kAfterUpdate };
  Moment moment = Moment::kBeforeUpdate;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  int64_t elements = 1;
  // Number of calls of this kind in a step. Some frameworks make one call for each group of parameters.
  int times = 1;
  Axis axis = Axis::kData;
};

// All habits of one job. DrawHabits fills the struct and InventedRun reads it. It has many members because
// each is an independent choice of a framework's author.
struct InventedHabits {
  ZeroStage stage = ZeroStage::kStage0;
  WorldShape world;
  // Number of consecutive model blocks that the framework treats as one block.
  int blocks_together = 1;
  // True if the head is a block of its own that is used last. False if the head is used with the embeddings.
  bool head_is_apart = false;
  int micro_steps = 1;

  Traffic gradients;
  Collective gradient_collective = Collective::kAllReduce;
  ReduceOp gradient_op = ReduceOp::kSum;
  // Gradients are summed in every micro-step, not only in the last.
  bool each_pass = false;
  // Gradients are summed after the backward pass has ended, not during it.
  bool after_backward = false;
  // Hybrid sharding: sums over replicas wait for the end of the step.
  bool replicas_at_end = false;

  // Says how stage 3 gathers parameters before their use.
  Traffic parameters;
  // In stage 3, parameters are gathered again in the backward pass.
  bool gather_in_backward = true;
  // In stage 3, this many blocks at the end stay whole from the forward to the backward pass.
  int whole_blocks = 0;
  // In stage 3, the first block stays whole as well.
  bool first_stays_whole = false;
  // In the backward pass, this many blocks are gathered ahead before a block's gradients are summed.
  int gathered_ahead = 0;
  // Number of blocks that are gathered at once. Pieces may extend over several of these blocks.
  int blocks_fetched = 1;
  // Hybrid sharding: parameters are partitioned over all ranks, but in the backward pass they are gathered
  // from a second copy inside a shard group.
  bool second_copies = false;
  // In stage 3, parameters up to this number of elements stay whole and are gathered after the step.
  int64_t kept_elements = 0;

  // Says how parameters are gathered after the step: all parameters in stages 1 and 2, those that stay whole
  // in stage 3.
  Traffic updated;
  Order updated_order = Order::kBlocks;
  // Each block's updated parameters are gathered before its first use, in the same pieces as its gradients.
  bool updated_in_forward = false;

  // Rank 0 broadcasts parameters before the first step.
  bool sends_parameters_first = false;
  // Rank 0 broadcasts buffers before each forward pass.
  bool sends_buffers = false;
  // After each backward pass the ranks exchange which parameters were used.
  bool sends_used_map = false;
  // Number of small integers that rank 0 broadcasts before each step.
  int announced = 0;
  std::vector<ScalarHabit> scalars;

  // With tensor parallelism, the number of exchanges of activations in each block.
  int activations_forward = 2;
  int activations_backward = 2;
  // True if activations are exchanged by AllGather and ReduceScatter, as in sequence parallelism, and not by
  // AllReduce.
  bool activations_split = false;
  bool recompute = false;
  bool sends_batch = false;
  // Number of AllReduces over the tensor-parallel vocabulary, each of one value for each token.
  int head_sums = 0;
  bool sums_shared_gradients = false;
  DataType activation_type = DataType::kFloat32;
  // Number of tokens in a micro-batch.
  int64_t tokens = 0;
  int64_t activation_elements = 0;
};

// Random habits for a job on this model.
InventedHabits DrawHabits(const ModelShape& model, std::mt19937_64& random);

// The stage that a job's calls reveal, or kUnknown. With several micro-steps, gradients that are summed in
// each of them are partitioned (stage 2), and gradients that are summed in the last one are whole (stage 1).
// With one micro-step the two cannot be distinguished. When parameters are gathered for the forward pass and
// kept until the step, one framework calls this stage 3 and another stage 2, so the stage is unknown.
ZeroStage StageToTell(const InventedHabits& habits);

// The name of all invented frameworks in runs and sequences.
inline constexpr std::string_view kInvented = "invented";

// The labelled operations of a job with these habits: construction and `steps` steps. The run's framework is
// kInvented, and its stage StageToTell(habits).
GeneratedRun InventedRun(const ModelShape& model, const InventedHabits& habits, int steps);

}  // namespace dynamiccl::agents
