// SPDX-License-Identifier: Apache-2.0
// The schedule of the project's own trainer (zero_workloads/zero, docs/zero_trainer.md): what a rank issues,
// computes and waits for, in program order. Apart from the trainer itself this is the only description of its
// step. The generator dynamiccl-zero uses its calls; `dynamiccl advise` also uses its computing and its
// waits.
#pragma once

#include <vector>

#include "traces/generators/framework_generator.h"
#include "traces/generators/zero_arena.h"

namespace dynamiccl {

enum class TrainerActionKind : uint8_t {
  kIssue,     // operation `operation`, counted over all steps, to run after `after` has ended
  kWait,      // waits until operation `operation` has ended
  kForward,   // `share` of the computing of a forward pass
  kBackward,  // `share` of the computing of a backward pass
  kUpdate,    // the optimizer updates `share` of the model's elements
};

struct TrainerAction {
  TrainerActionKind kind = TrainerActionKind::kIssue;
  size_t operation = 0;
  double share = 0;
  int64_t after = -1;  // an earlier operation after which this one runs, without a wait; -1: none
};

// True if each block of the model has an attention part and a feed-forward part that begins with the norm
// "ln_2", as in a gpt.
bool HasHalves(const ModelShape& model);

// Generates the steps of a rank by these rules:
// - The model consists of the root and of pieces that compute one after another: blocks, groups of blocks or
//   halves of blocks (`unit`, `unit_blocks`). Below, "block" means such a piece.
// - A block computes its share of a pass, in proportion to its parameters. The root's share is that of the
//   model's head, which computes last in a forward pass and first in a backward pass.
// - Stage 3 gathers a unit before it is used, and `prefetch_units` ahead with prefetch.
// - A block's gradients are put into the buckets once all of them are ready; in stage 1 after the backward
//   pass. There are two buckets, so a third one waits for the first. Without overlap each bucket is waited
//   for immediately.
// - With replicas, a bucket's sum over them is issued together with its sum over the shard group, and runs
//   after it.
// - The end of a backward pass waits for all buckets. Then the scalars are summed, then the optimizer runs.
// - Stages 1 and 2 gather each unit as soon as the optimizer has updated it; without overlap after the whole
//   optimizer step.
// - Stages 1 and 2 wait for an updated unit when the next step's forward pass needs it.
// The class has more than 20 members because these rules refer to each other: one operation's place in the
// step depends on which operations of all the other kinds are still open.
class TrainerSchedule {
 public:
  // The operations go to `list`. `input` and `list` must outlive the schedule.
  TrainerSchedule(const GeneratorInput& input, OperationList& list);

  void Step();
  // Call it after the last step: waits for the operations that the step left open.
  void WaitForAll();
  const std::vector<TrainerAction>& actions() const { return actions_; }
  double elements() const { return elements_; }

 private:
  static constexpr size_t kBuffers = 2;
  using Open = std::vector<size_t>;  // operations that were issued and are not waited for yet

  bool AllInOneBucket() const;
  bool IsReplicated() const { return axis_ == Axis::kShard; }
  bool AddsUpShards() const { return micro_steps_ > 1 && reduces_each_pass_; }
  size_t BeginOf(size_t block) const { return block == 0 ? 0 : blocks_[block - 1]; }
  double ShareOf(size_t block) const;
  void Compute(TrainerActionKind kind, double share);
  // Records the operations that were added to the list since the last call as issued and still open. They run
  // after the operation `after`.
  void Issued(Open& open, int64_t after = -1);
  void WaitFor(Open& open);
  void Gather(size_t unit, Role role, Axis axis);
  void GatherForForward(size_t unit);
  void Forward();
  void GatherForBackward(size_t unit);
  void Backward(bool reduce);
  void Reduce(size_t block);
  void ReduceToOwner(size_t unit);
  // Ends the sending of a bucket and goes on to the other buffer. Without overlap, first waits for the
  // bucket.
  void AfterSend();
  void Send(int64_t elements);
  void SumOverReplicas(int64_t elements, DataType type, Open& open, int64_t after = -1);
  void SettleAll();
  void Optimizer();

  OperationList& list_;
  const WorldShape& world_;
  const ZeroStage stage_;
  const DataType type_, reduce_type_;
  const int64_t micro_steps_;
  const bool reduces_each_pass_, hpz_, owner_, layer_owner_, all_reduce_, overlap_;
  const size_t units_ahead_;
  const Axis axis_;                   // axis along which the model is divided
  std::vector<size_t> blocks_;        // for each block, the root first: the index after its last unit
  const std::vector<int64_t> flats_;  // elements of each unit
  const ZeroArena arena_;
  double elements_ = 0;
  std::vector<TrainerAction> actions_;
  std::vector<Open> gathers_;   // open operations of each unit's gather
  std::vector<bool> gathered_;  // whether the unit was gathered in this pass
  // For each buffer, the operations that still use it. The buffer may be filled again only after these
  // operations.
  Open buckets_[kBuffers];
  size_t current_ = 0;
  size_t issued_ = 0;
  bool one_buffer_ = false;
  Open replica_sums_;
};

}  // namespace dynamiccl
