// SPDX-License-Identifier: Apache-2.0
// What a demo does and how long each part may take: all its numbers in one place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dynamiccl {

// What is trained. Width, bucket size and seed change the sizes and counts of the collectives, not their
// pattern.
struct TrainingShape {
  int layers = 2;
  int hidden = 128;
  int heads = 4;
  int sequence = 64;
  int batch = 8;
  // Gradients accumulate over two micro-steps: without, stages 1 and 2 issue the same calls.
  int micro_steps = 2;
  int64_t bucket_bytes = 1 << 20;
  int seed = 1;
};

// Seconds. Together under the promise of the command (10 minutes, or 2 with --quick) with a margin for
// start-up.
struct DemoBudget {
  double record_s = 0;
  double sweep_s = 0;
  double train_s = 0;
  double compare_s = 0;
};

struct DemoPlan {
  bool quick = false;
  int n_ranks = 4;
  int seed = 1;                                // of the agents' training
  std::string topology;                        // of the training runs; the agents see its sweep
  std::vector<std::string> other_topologies;   // also seen by the agents
  std::string held_out_topology;               // never seen by them
  std::vector<TrainingShape> training_shapes;  // recorded for the trigger agent
  TrainingShape held_out_shape;  // evaluated: neither its width nor bucket size nor seed was trained on
  int recorded_steps = 0;
  int compared_steps = 0;  // a run; the first kWarmUpSteps of them are not timed
  int largest_rounds = 0;  // of default, ours, best of sweep
  int sweep_repeats = 0;
  size_t sizes_a_collective = 0;  // at most so many size classes are swept
  int trigger_iterations = 0;     // training steps of the agents
  int config_iterations = 0;
  DemoBudget budget;
};

inline constexpr int kZeroStageCount = 4;
// Memory is touched and connections warm up in the first steps.
inline constexpr int kWarmUpSteps = 2;

DemoPlan MakeDemoPlan(bool quick);

}  // namespace dynamiccl
