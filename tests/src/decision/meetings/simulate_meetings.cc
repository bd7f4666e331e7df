// SPDX-License-Identifier: Apache-2.0
// Simulates meetings of ranks under faults, any number of seeds.
#include "tests/src/decision/meetings/meetings_simulation.h"
#include "tests/src/decision/switching/simulation_program.h"

int main(int argc, char** argv) {
  return dynamiccl::testing::SimulationMain(
      "simulate_meetings",
      "Attestation and exchange of masks under delays, losses, reordering, crashes and stalls, in virtual "
      "time.",
      dynamiccl::testing::MeetingProtocols(), argc, argv);
}
