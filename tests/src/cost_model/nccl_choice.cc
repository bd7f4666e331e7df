// SPDX-License-Identifier: Apache-2.0
// The rules of NCCL's releases, in the order in which NCCL applies them to a lone call:
// - Of the pairs that the release offers the cheapest one is taken (Cheapest).
// - The size decides how many channels and threads NCCL asks for (AskedWidth).
// - The scheduler deals the call out to channels (DealtChannels); only those that get a share are launched.
#include "tests/src/cost_model/nccl_choice.h"

#include <algorithm>

#include "src/collective/legal_configs.h"

namespace dynamiccl {
namespace {

// Each of these constants is the first release with a changed rule. From 2.23 on the scheduler deals traffic
// out in cells.
constexpr int kGrouped = 22300;
// From 2.26 on traffic by LL counts four times.
constexpr int kLLWeighted = 22600;
// From 2.29 on a cell has 32 KiB.
constexpr int kWideCells = 22900;
// From 2.31 on the choice is made in src/tuning.
constexpr int kRewritten = 23100;

// If several costs are equal, NCCL up to 2.30 takes the first of them and later releases take the last.
CollectiveConfig Cheapest(const CostTable& table, bool last_of_equals) {
  CollectiveConfig best = CheapestConfig(table);
  if (!last_of_equals || best.leaves_nccl_alone()) return best;
  const float lowest = table.at(best.algorithm, best.protocol);
  for (int a = 0; a < kAlgorithms; ++a) {
    for (int p = 0; p < kProtocols; ++p) {
      if (table.at(static_cast<Algorithm>(a), static_cast<Protocol>(p)) == lowest)
        best = {static_cast<Algorithm>(a), static_cast<Protocol>(p), 0};
    }
  }
  return best;
}

constexpr int kWarp = 32;
constexpr int kMaxThreads = 640;    // NCCL_MAX_NTHREADS
constexpr int kLeastThreads = 128;  // NCCL_MIN_NTHREADS: the fewest threads of a launch
// The most threads of a channel by protocol (NCCL_*_MAX_NTHREADS), and the bytes that each thread should have
// before another channel pays (NCCL_*_THREAD_THRESHOLD).
constexpr int kThreads[kProtocols] = {512, 640, 512};
constexpr uint64_t kThreshold[kProtocols] = {8, 8, 64};
constexpr double kSlowBusGbps = 12;  // PCI_BW, GB/s
constexpr int kSlowBusThreads = 256;

// The width of a launch: its channels, and the threads of each.
struct Width {
  int channels = 1;
  int threads = 0;
};

// Returns the threads of a channel before the size is considered. With a slow bus, releases up to 2.30 use
// fewer.
int StartThreads(const NcclCommunicatorFacts& facts, Algorithm algorithm, Protocol protocol) {
  const NcclGraph& ring = facts.graphs.at(Algorithm::kRing);
  const bool slow = facts.release < kRewritten && algorithm == Algorithm::kRing &&
                    protocol == Protocol::kSimple && ring.intra_gbps * ring.channels <= kSlowBusGbps;
  return slow ? kSlowBusThreads : kThreads[static_cast<size_t>(protocol)];
}

// Returns the width that NCCL asks its scheduler for. NCCL takes away channels, and then threads, as long as
// each has too little to do.
Width AskedWidth(const NcclCommunicatorFacts& facts, uint64_t bytes, Algorithm algorithm, Protocol protocol) {
  if (algorithm == Algorithm::kNvls || algorithm == Algorithm::kNvlsTree)
    return {facts.nvls_channels, kMaxThreads};
  uint64_t threshold = kThreshold[static_cast<size_t>(protocol)];
  if (algorithm == Algorithm::kRing && protocol == Protocol::kLL)
    threshold *= static_cast<uint64_t>(facts.n_ranks);
  Width width{facts.channels, StartThreads(facts, algorithm, protocol)};
  const auto too_wide = [&] {
    return bytes < static_cast<uint64_t>(width.channels) * static_cast<uint64_t>(width.threads) * threshold;
  };
  while (width.channels > 1 && too_wide()) --width.channels;
  while (width.threads % 128 == 0 && too_wide()) width.threads /= 2;
  if (protocol == Protocol::kSimple && algorithm == Algorithm::kRing) width.threads += kWarp;
  if (algorithm == Algorithm::kTree || algorithm == Algorithm::kPat) width.threads = kMaxThreads;
  width.threads = std::max(width.threads, kLeastThreads);
  return width;
}

uint64_t DivideUp(uint64_t value, uint64_t by) {
  return (value + by - 1) / by;
}

// Describes how the scheduler divides a lone call among channels. Traffic is the bytes that cross the links,
// weighted by protocol.
struct Dealing {
  uint64_t least_traffic = 0;  // A channel should have at least this traffic.
  uint64_t cell_bytes = 0;     // A channel gets whole cells of this size.
  uint64_t traffic_per_byte = 0;
  uint64_t data_bytes = 0;  // The bytes that the call's count argument stands for.
};

Dealing DealingOf(const NcclCommunicatorFacts& facts, Collective collective, uint64_t bytes,
                  Protocol protocol) {
  const bool per_rank = collective == Collective::kAllGather || collective == Collective::kReduceScatter;
  const auto ranks = static_cast<uint64_t>(facts.n_ranks);
  Dealing dealing;
  dealing.data_bytes = per_rank ? bytes / ranks : bytes;
  dealing.traffic_per_byte = per_rank ? ranks : collective == Collective::kAllReduce ? 2 : 1;
  if (facts.release >= kLLWeighted && protocol == Protocol::kLL) dealing.traffic_per_byte *= 4;
  dealing.least_traffic = facts.release >= kWideCells ? 32 << 10 : facts.release >= kGrouped ? 16 << 10 : 512;
  dealing.cell_bytes = facts.release < kGrouped
                           ? 16
                           : DivideUp(DivideUp(dealing.least_traffic, dealing.traffic_per_byte), 16) * 16;
  return dealing;
}

// Returns the traffic that each channel should get if the call is divided among `asked` channels.
uint64_t ShareOf(const NcclCommunicatorFacts& facts, const Dealing& dealing, uint64_t asked) {
  const uint64_t traffic = dealing.data_bytes * dealing.traffic_per_byte;
  if (facts.release >= kWideCells) return DivideUp(std::max(dealing.least_traffic, traffic) / asked, 16) * 16;
  return std::max(dealing.least_traffic, std::max(dealing.least_traffic, traffic) / asked);
}

// Returns how many of the `asked` channels get a share of the call (scheduleCollTasksToPlan of enqueue.cc).
// The first channel's share is rounded to whole cells: down before 2.23, up since then.
int DealtChannels(const NcclCommunicatorFacts& facts, const Dealing& dealing, int asked, int limit) {
  const uint64_t cells = DivideUp(dealing.data_bytes, dealing.cell_bytes);
  const uint64_t share = ShareOf(facts, dealing, static_cast<uint64_t>(std::min(asked, limit)));
  const uint64_t cell_traffic = dealing.cell_bytes * dealing.traffic_per_byte;
  const uint64_t cells_each = std::min(cells, DivideUp(share, cell_traffic));
  if (limit == 1 || cells_each == 0) return 1;
  const uint64_t first =
      std::min(cells, facts.release < kGrouped ? share / cell_traffic : DivideUp(share, cell_traffic));
  const uint64_t channels = (first != 0 ? 1 : 0) + DivideUp(cells - first, cells_each);
  return static_cast<int>(std::min(channels, static_cast<uint64_t>(limit)));
}

}  // namespace

NcclOwnChoice NcclChoice(const NcclCommunicatorFacts& facts, Collective collective, uint64_t bytes) {
  CollectiveConfig config = Cheapest(NcclCosts(facts, collective, bytes), facts.release >= kRewritten);
  if (config.leaves_nccl_alone()) return {};
  const Width asked = AskedWidth(facts, bytes, config.algorithm, config.protocol);
  const bool multicast = config.algorithm == Algorithm::kNvls || config.algorithm == Algorithm::kNvlsTree;
  const int limit = multicast ? facts.nvls_channels : facts.channels;
  const Dealing dealing = DealingOf(facts, collective, bytes, config.protocol);
  config.channels = static_cast<uint8_t>(DealtChannels(facts, dealing, asked.channels, limit));
  return {.config = config, .threads = asked.threads};
}

}  // namespace dynamiccl
