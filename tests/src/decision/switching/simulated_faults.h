// SPDX-License-Identifier: Apache-2.0
// The faults in one simulated life of a communicator, drawn from a seed.
#pragma once

#include <array>
#include <cstdint>

namespace dynamiccl::testing {

inline constexpr int kMaxSimulatedRanks = 8;
inline constexpr int64_t kNeverNs = INT64_MAX;

// Draws integers only, so the numbers are equal on every machine.
class SeededRandom {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed) {}

  uint64_t Next();
  uint64_t Below(uint64_t end) { return Next() % end; }
  bool Chance(int per_mille) { return Below(1000) < static_cast<uint64_t>(per_mille); }
  // Draws a number on a logarithmic scale: between 1 and 2 is as likely as between 1000 and 2000.
  int64_t AcrossScales(int64_t least, int64_t most);
  // Draws a waiting time around `mean`, sometimes several times as long.
  int64_t Waiting(int64_t mean);

 private:
  uint64_t state_;
};

// Permille of messages for the first three members, and of calls or control steps for the stalls.
struct SimulatedFaults {
  int n_ranks = 2;
  int64_t call_ns = 0;         // The time between two calls of a rank.
  int64_t tick_ns = 0;         // The time between two steps of a control thread.
  int64_t delay_ns = 0;        // The delay of a message; differing delays reorder messages.
  uint64_t run_ahead = 1;      // The calls by which a rank may be ahead of the slowest.
  int64_t request_ns = 0;      // The time between two requests to switch.
  int64_t final_delay_ns = 0;  // The delay of a message once the faults have stopped.
  int lost = 0;
  int duplicated = 0;
  int much_later = 0;
  int call_stalls = 0;
  int control_stalls = 0;
  int process_stalls = 0;
  int interrupted = 0;     // A thread is stopped between two steps that belong together.
  int unusable_table = 0;  // In permille of requests: one rank does not have the table.
  // For each rank, the times between which it cannot be reached. A rank whose first time is 0 comes late.
  std::array<int64_t, kMaxSimulatedRanks> unreachable_from{};
  std::array<int64_t, kMaxSimulatedRanks> unreachable_until{};
  int crashing_rank = -1;
  uint64_t crash_at_message = 0;  // The rank dies when it is about to send its n-th message.
  int64_t abort_ns = kNeverNs;    // The time at which the program aborts the communicator.
};

SimulatedFaults DrawFaults(SeededRandom& random);
// Stops all faults. Times stay as they are, and messages take final_delay_ns.
void StopFaults(SimulatedFaults& faults);

}  // namespace dynamiccl::testing
