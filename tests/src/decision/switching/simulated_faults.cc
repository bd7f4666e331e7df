// SPDX-License-Identifier: Apache-2.0
#include "tests/src/decision/switching/simulated_faults.h"

#include <bit>
#include <cstddef>

namespace dynamiccl::testing {
namespace {

constexpr int64_t kMicrosecond = 1'000;
constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kSecond = 1'000'000'000;

void DrawNetwork(SimulatedFaults& faults, SeededRandom& random) {
  faults.delay_ns = random.AcrossScales(5 * kMicrosecond, 20 * kMillisecond);
  faults.final_delay_ns = faults.delay_ns < kMillisecond ? faults.delay_ns : kMillisecond;
  constexpr int kLoss[] = {0, 0, 10, 100, 400};
  faults.lost = kLoss[random.Below(5)];
  faults.duplicated = random.Chance(500) ? 200 : 0;
  faults.much_later = random.Chance(500) ? 100 : 0;
  for (int rank = 0; rank < faults.n_ranks; ++rank) {
    if (!random.Chance(150)) continue;
    const auto index = static_cast<size_t>(rank);
    faults.unreachable_from[index] = random.Chance(300) ? 0 : random.AcrossScales(kMillisecond, 4 * kSecond);
    faults.unreachable_until[index] =
        random.Chance(200) ? kNeverNs
                           : faults.unreachable_from[index] + random.AcrossScales(kMillisecond, 4 * kSecond);
  }
}

void DrawProcesses(SimulatedFaults& faults, SeededRandom& random) {
  constexpr int kCallStalls[] = {0, 2, 20};
  faults.call_stalls = kCallStalls[random.Below(3)];
  faults.control_stalls = random.Chance(500) ? 20 : 0;
  faults.process_stalls = random.Chance(300) ? 1 : 0;
  faults.interrupted = random.Chance(700) ? 200 : 0;
  if (random.Chance(250)) {
    const bool leader = random.Chance(500);
    faults.crashing_rank = leader ? 0 : static_cast<int>(random.Below(static_cast<uint64_t>(faults.n_ranks)));
    faults.crash_at_message = 1 + random.Below(leader ? 60 : 20);
  } else if (random.Chance(50)) {
    faults.abort_ns = random.AcrossScales(kMillisecond, 2 * kSecond);
  }
}

}  // namespace

uint64_t SeededRandom::Next() {
  // This is splitmix64, public domain (Vigna).
  uint64_t word = state_ += 0x9e3779b97f4a7c15;
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
  word = (word ^ word >> 27) * 0x94d049bb133111eb;
  return word ^ word >> 31;
}

int64_t SeededRandom::AcrossScales(int64_t least, int64_t most) {
  const auto scales = static_cast<uint64_t>(std::bit_width(static_cast<uint64_t>(most / least)));
  const int64_t scale = least << Below(scales);
  const int64_t value = scale + static_cast<int64_t>(Below(static_cast<uint64_t>(scale)));
  return value < most ? value : most;
}

int64_t SeededRandom::Waiting(int64_t mean) {
  // Quantiles of the exponential distribution with mean 16, at the middles of sixteen equal parts.
  constexpr int64_t kQuantiles[] = {1, 2, 3, 4, 5, 7, 8, 10, 12, 14, 17, 20, 24, 30, 37, 55};
  return mean * kQuantiles[Below(16)] / 16 +
         static_cast<int64_t>(Below(static_cast<uint64_t>(mean / 16 + 1)));
}

SimulatedFaults DrawFaults(SeededRandom& random) {
  SimulatedFaults faults;
  faults.n_ranks = 2 + static_cast<int>(random.Below(kMaxSimulatedRanks - 1));
  faults.call_ns = random.AcrossScales(20 * kMicrosecond, 5 * kMillisecond);
  faults.tick_ns = random.AcrossScales(200 * kMicrosecond, 10 * kMillisecond);
  faults.run_ahead = static_cast<uint64_t>(random.AcrossScales(1, 64));
  faults.request_ns = random.AcrossScales(kMillisecond, 500 * kMillisecond);
  faults.unusable_table = random.Chance(300) ? 100 : 0;
  DrawNetwork(faults, random);
  DrawProcesses(faults, random);
  return faults;
}

void StopFaults(SimulatedFaults& faults) {
  SimulatedFaults calm;
  calm.n_ranks = faults.n_ranks;
  calm.call_ns = faults.call_ns;
  calm.tick_ns = faults.tick_ns;
  calm.run_ahead = faults.run_ahead;
  calm.delay_ns = calm.final_delay_ns = faults.final_delay_ns;
  calm.request_ns = kNeverNs;
  faults = calm;
}

}  // namespace dynamiccl::testing
