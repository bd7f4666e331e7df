// SPDX-License-Identifier: Apache-2.0
// All numbers of a demo in one place: what is trained and swept, and how long each part may take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dynamiccl {

// A model and batch to train. Width, bucket size and seed change the sizes and counts of the collectives, not
// their pattern.
struct TrainingShape {
  int layers = 2;
  int hidden = 128;
  int heads = 4;
  int sequence = 64;
  int batch = 8;
  // Gradients accumulate over two micro-steps. With one micro-step, ZeRO stages 1 and 2 would issue the same
  // calls.
  int micro_steps = 2;
  int64_t bucket_bytes = 1 << 20;
  int seed = 1;
};

// Seconds of each part of the demo. Their sum is about what the command promises: some 5 minutes, or 2 with
// --quick.
struct DemoBudget {
  double record_s = 0;
  double sweep_s = 0;
  double train_s = 0;
  double compare_s = 0;
  double whole_s = 0;
};

// All numbers of one demo. MakeDemoPlan fills it; the steps only read it.
struct DemoPlan {
  bool quick = false;
  int n_ranks = 4;
  // Seed for the training of the agents.
  int seed = 1;
  // Topology on which the models are trained. The agents learn from its sweep.
  std::string topology;
  // Further topologies from whose sweeps the agents learn.
  std::vector<std::string> other_topologies;
  // Topology whose sweep the agents never see. It shows how they choose on an unknown fabric.
  std::string held_out_topology;
  // Shapes (model and batch) that are recorded to train the structure agent.
  std::vector<TrainingShape> training_shapes;
  // Shape (model and batch) with which the agents are evaluated. No training shape has its width, bucket size
  // or seed.
  TrainingShape held_out_shape;
  int recorded_steps = 0;
  // Number of training steps of the runs whose losses and choices are compared.
  int compared_steps = 0;
  // For comparing step times, three settings alternate within one start of a job: NCCL's default, the
  // policy's choice, and the best of the sweep. These are the number of steps of such a start, and the most
  // starts for each ZeRO stage.
  int steps_in_turns = 0;
  int largest_starts = 0;
  int sweep_repeats = 0;
  // Number of steps of a run that is in mode adaptive from beginning to end, and number of fabrics with such
  // runs.
  int whole_steps = 0;
  int whole_fabrics = 0;
  // Largest number of size classes that are swept for a collective.
  size_t sizes_a_collective = 0;
  DemoBudget budget;
};

inline constexpr int kZeroStageCount = 4;
// Steps that a setting gets before the next one has its turn. The first step of a turn is not timed.
inline constexpr uint32_t kStepsOfArm = 2;

// Returns the plan of the whole demo or, with `quick`, of the shorter one.
DemoPlan MakeDemoPlan(bool quick);

}  // namespace dynamiccl
