// SPDX-License-Identifier: Apache-2.0
// Numbers of the whole demo and of the shorter demo (--quick).
#include "tools/demo/demo_plan.h"

namespace dynamiccl {
namespace {

// Shapes (model and batch) that are recorded to train the agents. Their widths and bucket sizes enclose those
// of the held-out shape, so that the agents are evaluated within the range on which they were trained.
std::vector<TrainingShape> TrainingShapes(bool quick) {
  std::vector<TrainingShape> shapes{
      {.layers = 2, .hidden = 96, .heads = 4, .bucket_bytes = 256 << 10, .seed = 11},
      {.layers = 3, .hidden = 160, .heads = 4, .bucket_bytes = 1 << 20, .seed = 12},
  };
  if (quick) return shapes;
  shapes.push_back({.layers = 2, .hidden = 192, .heads = 6, .bucket_bytes = 2 << 20, .seed = 13});
  shapes.push_back({.layers = 4, .hidden = 64, .heads = 4, .bucket_bytes = 128 << 10, .seed = 14});
  return shapes;
}

}  // namespace

DemoPlan MakeDemoPlan(bool quick) {
  DemoPlan plan;
  plan.quick = quick;
  // The held-out fabric lies between the two fabrics whose measurements the agents see, so the agents
  // interpolate.
  plan.topology = "two-nodes-slow";
  plan.other_topologies = {"two-nodes-infiniband"};
  plan.held_out_topology = "two-nodes-ethernet";
  plan.training_shapes = TrainingShapes(quick);
  plan.held_out_shape = {.layers = 2, .hidden = 128, .heads = 4, .bucket_bytes = 512 << 10, .seed = 21};
  plan.recorded_steps = quick ? 8 : 16;
  plan.compared_steps = quick ? 9 : 20;
  plan.steps_in_turns = quick ? 80 : 120;
  plan.largest_starts = quick ? 1 : 6;
  plan.sweep_repeats = quick ? 6 : 16;
  plan.sizes_a_collective = quick ? 7 : 8;
  plan.whole_steps = quick ? 150 : 400;
  plan.whole_fabrics = quick ? 1 : 3;
  plan.budget =
      quick ? DemoBudget{.record_s = 20, .sweep_s = 28, .train_s = 14, .compare_s = 25, .whole_s = 23}
            : DemoBudget{.record_s = 50, .sweep_s = 50, .train_s = 16, .compare_s = 60, .whole_s = 110};
  return plan;
}

}  // namespace dynamiccl
