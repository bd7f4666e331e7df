// SPDX-License-Identifier: Apache-2.0
// Simulates switches of tables under faults, with any number of seeds.
#include "tests/src/decision/switching/simulation.h"
#include "tests/src/decision/switching/simulation_program.h"

int main(int argc, char** argv) {
  return dynamiccl::testing::SimulationMain(
      "simulate_switching",
      "Switches of tables under delays, losses, reordering, crashes and stalls, in virtual time.",
      dynamiccl::testing::Protocols(), argc, argv);
}
