// SPDX-License-Identifier: Apache-2.0
// Simulates votes of ranks under faults, for any number of seeds.
#include "tests/src/decision/switching/simulation_program.h"
#include "tests/src/decision/votes/votes_simulation.h"

int main(int argc, char** argv) {
  return dynamiccl::testing::SimulationMain(
      "simulate_votes",
      "Attestation and exchange of masks under delays, losses, reordering, crashes and stalls, in virtual "
      "time.",
      dynamiccl::testing::VoteProtocols(), argc, argv);
}
