// SPDX-License-Identifier: Apache-2.0
// Measures for how many collectives per second one core computes times in closed form, on a communicator of
// many ranks. It measures calls with given configs and calls that the library decides. Results are medians
// over rounds.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "src/base/clock.h"
#include "src/base/statistics.h"
#include "src/collective/legal_configs.h"
#include "src/simulator/closed_form.h"
#include "src/simulator/fit_system.h"

namespace dynamiccl {
namespace {

constexpr int kRounds = 21;
// Number of calls in a round.
constexpr size_t kCalls = 1 << 16;
constexpr uint64_t kMaxBytes = uint64_t{1} << 32;

struct Call {
  Collective collective;
  uint64_t bytes;
  CollectiveConfig config;
};

// Returns a system whose constants are related as in NCCL's tables, with residuals at eight rank counts.
System MakeSystem() {
  System system{.name = "bench", .source = "NCCL's relations", .ranks_per_node = 8, .max_channels = 32};
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree, Algorithm::kNvlsTree}) {
    for (const Protocol protocol : {Protocol::kLL, Protocol::kLL128, Protocol::kSimple})
      system.path(algorithm, protocol) = PriorCosts(algorithm, protocol);
  }
  for (int ranks = 8; ranks <= 1024; ranks *= 2) {
    for (uint64_t bytes = 8; bytes <= kMaxBytes; bytes *= 2) {
      system.residuals.push_back(
          {.n_ranks = ranks, .bytes = bytes, .log_factor = static_cast<double>(bytes % 7) / 10});
    }
  }
  return system;
}

std::vector<Call> MakeCalls(bool stated) {
  std::mt19937_64 random(1);
  std::vector<Call> calls;
  while (calls.size() < kCalls) {
    const auto collective = static_cast<Collective>(random() % kTunableCollectives);
    Call call{collective, 1 + (random() % kMaxBytes >> (random() % 32)), kLeaveNcclAlone};
    if (stated) {
      const bool tree = collective == Collective::kAllReduce && random() % 2 == 0;
      call.config = {tree ? Algorithm::kTree : Algorithm::kRing, static_cast<Protocol>(random() % kProtocols),
                     static_cast<uint8_t>(random() % 33)};
    }
    calls.push_back(call);
  }
  return calls;
}

// Returns collectives per second. `sum` keeps the compiler from removing the work.
double Rate(const CollectiveTimes& times, const std::vector<Call>& calls, double& sum) {
  std::vector<double> rates;
  for (int round = 0; round < kRounds; ++round) {
    const int64_t begin = MonotonicNanoseconds();
    for (const Call& call : calls) sum += times.Microseconds(call.collective, call.bytes, call.config);
    const auto ns = static_cast<double>(MonotonicNanoseconds() - begin);
    rates.push_back(static_cast<double>(calls.size()) * 1e9 / ns);
  }
  return MedianInPlace(rates);
}

int Main(int argc, char** argv) {
  CLI::App app("Collectives that one core prices in a second");
  int ranks = 2048;
  bool json = false;
  app.add_option("--ranks", ranks, "Ranks of the communicator")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  app.add_flag("--json", json, "Print JSON");
  CLI11_PARSE(app, argc, argv);
  const System system = MakeSystem();
  const int64_t begin = MonotonicNanoseconds();
  const CollectiveTimes times(system, ranks);
  const double ready_us = static_cast<double>(MonotonicNanoseconds() - begin) / 1e3;
  double sum = 0;
  const double stated = Rate(times, MakeCalls(true), sum);
  const double open = Rate(times, MakeCalls(false), sum);
  if (json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"schema", 1},
                                              {"ranks", ranks},
                                              {"ready_us", ready_us},
                                              {"stated_per_second", stated},
                                              {"open_per_second", open},
                                              {"sum_us", sum}}
                           .dump());
  } else {
    fmt::print(
        "{} ranks: ready in {:.0f} us; {:.1f} million stated configs, {:.1f} million open choices a second\n",
        ranks, ready_us, stated / 1e6, open / 1e6);
  }
  return 0;
}

}  // namespace
}  // namespace dynamiccl

int main(int argc, char** argv) {
  return dynamiccl::Main(argc, argv);
}
