// SPDX-License-Identifier: Apache-2.0
// All numbers of a demo in one place: what it does and how long each part may take.
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
  // Gradients accumulate over two micro-steps: with one, stages 1 and 2 would issue the same calls.
  int micro_steps = 2;
  int64_t bucket_bytes = 1 << 20;
  int seed = 1;
};

// Seconds of each part. Together they stay below the command's promise (10 minutes, or 2 with --quick) with a
// margin for start-up.
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
  // Seed of the agents' training.
  int seed = 1;
  // Topology of the training runs; the agents see its sweep.
  std::string topology;
  // Further topologies whose sweeps the agents see.
  std::vector<std::string> other_topologies;
  // Topology that the agents never see.
  std::string held_out_topology;
  // Shapes that are recorded for the structure agent.
  std::vector<TrainingShape> training_shapes;
  // Shape that is evaluated; its width, bucket size and seed do not occur in training.
  TrainingShape held_out_shape;
  int recorded_steps = 0;
  // Steps of the runs whose losses and choices are compared.
  int compared_steps = 0;
  // Three settings take turns within one start of the job: NCCL's default, the policy's choice, and the best
  // of the sweep. These are the number of steps of such a start, and the most starts for each stage.
  int steps_in_turns = 0;
  int largest_starts = 0;
  int sweep_repeats = 0;
  // Number of steps of a whole run in mode adaptive, and number of fabrics with such runs.
  int whole_steps = 0;
  int whole_fabrics = 0;
  // Largest number of size classes that are swept for a collective.
  size_t sizes_a_collective = 0;
  // Training steps of the two agents.
  int structure_iterations = 0;
  int config_iterations = 0;
  DemoBudget budget;
};

inline constexpr int kZeroStageCount = 4;
// Steps of a turn: the first does not count.
inline constexpr uint32_t kStepsOfArm = 2;

// The plan of the whole demo, or of the shorter one.
DemoPlan MakeDemoPlan(bool quick);

}  // namespace dynamiccl
