// SPDX-License-Identifier: Apache-2.0
// Simulates experiments under faults for any number of seeds. docs/results/agreement.md describes it.
#include "tests/plugin/simulated_experiments.h"
#include "tests/src/decision/switching/simulation.h"
#include "tests/src/decision/switching/simulation_program.h"

int main(int argc, char** argv) {
  return dynamiccl::testing::SimulationMain(
      "simulate_experiments",
      "Experiments on training steps, their adoptions and revocations, and levels of memory, with ranks that "
      "are late and messages that are lost, in virtual time.",
      dynamiccl::testing::ExperimentProtocols(), argc, argv);
}
