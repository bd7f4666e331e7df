// SPDX-License-Identifier: Apache-2.0
// Measures how exactly emulated links follow their settings, as a program sees it. For a grid of settings, it
// measures one-way latency and bandwidth of Send and Recv between two emulated nodes. It also measures how
// long a `dynamiccl link set` takes to have an effect. Ranks are threads of this process. Its links are set
// through the socket that the command uses.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "src/base/statistics.h"
#include "src/nccl_abi/host_stream.h"
#include "src/transport/link_client.h"

namespace dynamiccl {
namespace {

// The command line.
struct Options {
  int ranks = 2;
  int cores = 0;
  int rounds = 7;
  // Number of latencies that are measured in a round.
  int samples = 15;
  std::vector<double> latencies{20, 50, 100, 200, 300, 1000};
  std::vector<double> bandwidths{0.15, 0.5, 1.5, 3, 5};
  bool change = false;
  bool json = false;
};

// Settings of a link that is so fast that only the software takes time: no latency and 100000 GB/s.
constexpr double kNoLatency = 0;
constexpr double kFast = 1e5;
// Duration in microseconds of a transfer that measures bandwidth. It is so long that the cost of starting it
// does not matter.
constexpr double kTransferUs = 5000;
constexpr size_t kLargest = 32 << 20;
// Time that the sender leaves the receiver to begin its wait.
constexpr int64_t kSettleNs = 100'000;
// The latency that --change sets. It is far from the old one.
constexpr double kChangedUs = 50'000;
constexpr int kChanges = 20;

// One setting of the link and its results, one for each round.
struct Cell {
  double latency_us = kNoLatency;
  double bandwidth_gbps = kFast;
  // Measured latencies in microseconds.
  std::vector<double> latency_seen;
  // Measured bandwidths in GB/s.
  std::vector<double> bandwidth_seen;
};

// Returns half of the distance between the quartiles, in percent of the median.
double NoisePercent(std::vector<double> values) {
  const double spread = QuantileInPlace(values, 0.75) - QuantileInPlace(values, 0.25);
  return 50 * spread / MedianInPlace(values);
}

void Check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  fmt::print(stderr, "error: {}: {}\n", what, ncclGetLastError(nullptr));
  std::exit(3);
}

// Sets latency and bandwidth of all links of this process.
void Order(double latency_us, double bandwidth_gbps) {
  LinkRequest request{.kind = LinkRequestKind::kSet};
  request.change.Set(0, latency_us);
  request.change.Set(1, bandwidth_gbps);
  if (const auto answer = AskForLinks(::getpid(), request); !answer) {
    fmt::print(stderr, "{}", Describe(answer.error()));
    std::exit(3);
  }
}

void WaitNs(int64_t ns) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
}

// Values that the two ranks of a pair exchange in memory. The first rank is on node 0.
struct Pair {
  std::atomic<int64_t> receiver_ready{0};
  std::atomic<int64_t> received{0};
  std::atomic<int64_t> sent_ns{0};
  std::atomic<int64_t> received_ns{0};
};

// One rank with its communicator and stream. One thread uses it.
class Rank {
 public:
  Rank(int rank, int n_ranks, const ncclUniqueId& id, std::vector<Pair>& pairs)
      : sends_(rank < n_ranks / 2),
        peer_(sends_ ? rank + n_ranks / 2 : rank - n_ranks / 2),
        pair_(pairs[static_cast<size_t>(rank % (n_ranks / 2))]),
        buffer_(kLargest, static_cast<char>(1 + sends_)) {
    Check(ncclCommInitRank(&comm_, n_ranks, id, rank), "ncclCommInitRank");
    Check(hostcclStreamCreate(&stream_), "hostcclStreamCreate");
  }
  ~Rank() {
    hostcclStreamDestroy(stream_);
    ncclCommDestroy(comm_);
  }

  bool sends() const { return sends_; }

  // Returns the microseconds from before ncclSend until the receiver has the data. The receiver already
  // waits. Both ranks get the same value.
  double OneWayUs(size_t bytes) {
    ++number_;
    if (sends_)
      Send(bytes);
    else
      Receive(bytes);
    return static_cast<double>(pair_.received_ns.load() - pair_.sent_ns.load()) / 1e3;
  }
  int64_t sent_ns() const { return pair_.sent_ns.load(); }

 private:
  void Send(size_t bytes) {
    while (pair_.receiver_ready.load() < number_) WaitNs(kSettleNs / 10);
    WaitNs(kSettleNs);
    pair_.sent_ns.store(MonotonicNanoseconds());
    Check(ncclSend(buffer_.data(), bytes, ncclChar, peer_, comm_, stream_), "ncclSend");
    Check(hostcclStreamSynchronize(stream_), "hostcclStreamSynchronize");
    while (pair_.received.load() < number_) WaitNs(kSettleNs / 10);
  }

  void Receive(size_t bytes) {
    pair_.receiver_ready.store(number_);
    Check(ncclRecv(buffer_.data(), bytes, ncclChar, peer_, comm_, stream_), "ncclRecv");
    Check(hostcclStreamSynchronize(stream_), "hostcclStreamSynchronize");
    pair_.received_ns.store(MonotonicNanoseconds());
    pair_.received.store(number_);
  }

  bool sends_;
  int peer_;
  Pair& pair_;
  int64_t number_ = 0;
  std::vector<char> buffer_;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

// Measures one setting. Rank 0 keeps the results. The bandwidth is that of rank 0's pair times the number of
// pairs, because all pairs share the link.
void MeasureCell(Rank& rank, int index, std::barrier<>& all, const Options& options, Cell& cell) {
  if (index == 0) Order(cell.latency_us, cell.bandwidth_gbps);
  all.arrive_and_wait();
  std::vector<double> latencies;
  for (int i = 0; i < options.samples; ++i) latencies.push_back(rank.OneWayUs(4));
  all.arrive_and_wait();
  const int pairs = options.ranks / 2;
  const double wanted = cell.bandwidth_gbps * kTransferUs * 1e3 / pairs;
  const size_t bytes = std::clamp<size_t>(static_cast<size_t>(wanted), 64 << 10, kLargest);
  const double transfer_us = rank.OneWayUs(bytes) - cell.latency_us;
  all.arrive_and_wait();
  if (index != 0) return;
  cell.latency_seen.push_back(Median(latencies));
  cell.bandwidth_seen.push_back(static_cast<double>(bytes) * pairs / transfer_us / 1e3);
}

// Milliseconds of all changes.
struct ChangeTimes {
  // Time from the request to its answer.
  std::vector<double> order_ms;
  // Time from the request to the first message that has the new latency.
  std::vector<double> effect_ms;
};

// Sends messages while another thread changes the latency.
void MeasureChange(Rank& rank, int index, std::barrier<>& all, ChangeTimes& times) {
  if (index == 0) Order(kNoLatency, kFast);
  all.arrive_and_wait();
  std::jthread operator_thread;
  int64_t ordered_ns = 0;
  if (index == 0) {
    operator_thread = std::jthread([&] {
      WaitNs(20'000'000);
      ordered_ns = MonotonicNanoseconds();
      Order(kChangedUs, kFast);
      times.order_ms.push_back(static_cast<double>(MonotonicNanoseconds() - ordered_ns) / 1e6);
    });
  }
  // Both ranks of a pair get the same time, so they leave the loop together.
  while (rank.OneWayUs(4) < kChangedUs * 0.9) {
  }
  if (index == 0) {
    operator_thread.join();
    // A message that was late because the machine was busy, and not because of the request, does not count.
    if (rank.sent_ns() > ordered_ns)
      times.effect_ms.push_back(static_cast<double>(rank.sent_ns() - ordered_ns) / 1e6);
  }
  all.arrive_and_wait();
}

double ErrorPercent(double seen, double set) {
  return 100 * (seen - set) / set;
}

nlohmann::ordered_json AsJson(const Cell& cell, double software_us) {
  const double latency = Median(cell.latency_seen);
  const double bandwidth = Median(cell.bandwidth_seen);
  return {{"latency_us", cell.latency_us},
          {"bandwidth_gbps", cell.bandwidth_gbps},
          {"latency_seen_us", latency},
          {"latency_error_percent", ErrorPercent(latency, cell.latency_us)},
          {"latency_error_without_software_percent", ErrorPercent(latency - software_us, cell.latency_us)},
          {"latency_noise_percent", NoisePercent(cell.latency_seen)},
          {"bandwidth_seen_gbps", bandwidth},
          {"bandwidth_error_percent", ErrorPercent(bandwidth, cell.bandwidth_gbps)},
          {"bandwidth_noise_percent", NoisePercent(cell.bandwidth_seen)}};
}

void PrintGrid(const std::vector<Cell>& cells, const Options& options, int cores) {
  const double software_us = Median(cells.front().latency_seen);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (size_t i = 1; i < cells.size(); ++i) rows.push_back(AsJson(cells[i], software_us));
  if (options.json) {
    const nlohmann::ordered_json json{{"schema", 1},
                                      {"ranks", options.ranks},
                                      {"cores", cores},
                                      {"rounds", options.rounds},
                                      {"software_us", software_us},
                                      {"rows", rows}};
    fmt::print("{}\n", json.dump(1));
    return;
  }
  fmt::print("# {} ranks on {} cores, medians of {} rounds, {} samples of latency in each\n", options.ranks,
             cores, options.rounds, options.samples);
  fmt::print("# software (a link of no latency): {:.2f} us\n", software_us);
  fmt::print("#    set           latency                              bandwidth\n");
  fmt::print("#    us   GB/s     seen us  error %  less software  noise    seen GB/s  error %  noise\n");
  for (const auto& row : rows) {
    const auto of = [&](const char* key) { return row[key].get<double>(); };
    fmt::print("{:>7g} {:>6g} {:>11.2f} {:>+8.1f} {:>+14.1f} {:>6.1f} {:>12.4f} {:>+8.1f} {:>6.1f}\n",
               of("latency_us"), of("bandwidth_gbps"), of("latency_seen_us"), of("latency_error_percent"),
               of("latency_error_without_software_percent"), of("latency_noise_percent"),
               of("bandwidth_seen_gbps"), of("bandwidth_error_percent"), of("bandwidth_noise_percent"));
  }
}

void PrintChange(const ChangeTimes& times, const Options& options) {
  if (times.effect_ms.empty()) {
    fmt::print(stderr, "error: the machine was too busy to see a change\n");
    std::exit(1);
  }
  const double worst = *std::max_element(times.effect_ms.begin(), times.effect_ms.end());
  if (options.json) {
    const nlohmann::ordered_json json{{"schema", 1},
                                      {"changes", times.effect_ms.size()},
                                      {"order_p50_ms", Median(times.order_ms)},
                                      {"effect_p50_ms", Median(times.effect_ms)},
                                      {"effect_worst_ms", worst}};
    fmt::print("{}\n", json.dump(1));
    return;
  }
  fmt::print(
      "{} changes: the order took {:.2f} ms, the first message that obeyed was sent {:.2f} ms after it was "
      "given (worst {:.2f} ms)\n",
      kChanges, Median(times.order_ms), Median(times.effect_ms), worst);
}

// Limits the process to the first of its cores. Returns how many it has then.
int LimitCores(int cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof(set), &set);
  for (int cpu = 0, kept = 0; cores > 0 && cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set) && ++kept > cores) CPU_CLR(cpu, &set);
  }
  ::sched_setaffinity(0, sizeof(set), &set);
  return CPU_COUNT(&set);
}

// Writes a topology of two nodes. The benchmark sets its links.
std::filesystem::path WriteTopology() {
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("link_precision_{}.toml", ::getpid());
  std::ofstream(path) << "version = 1\nnodes = 2\n[link.inter]\nlatency_us = 0\nbandwidth_gbps = 100000\n";
  return path;
}

// Returns all settings. The first one has no latency, and so measures the software.
std::vector<Cell> Grid(const Options& options) {
  std::vector<Cell> cells(1);
  for (const double latency : options.latencies) {
    for (const double bandwidth : options.bandwidths) cells.push_back({latency, bandwidth, {}, {}});
  }
  return cells;
}

void Run(const Options& options) {
  const int cores = LimitCores(options.cores);
  const auto topology = WriteTopology();
  ::setenv("HOSTCCL_TOPOLOGY", topology.c_str(), 1);
  std::vector<Cell> cells = Grid(options);
  ChangeTimes times;
  std::vector<Pair> pairs(static_cast<size_t>(options.ranks / 2));
  std::barrier<> all(options.ranks);
  ncclUniqueId id{};
  Check(ncclGetUniqueId(&id), "ncclGetUniqueId");
  std::vector<std::jthread> threads;
  for (int index = 0; index < options.ranks; ++index) {
    threads.emplace_back([&, index] {
      Rank rank(index, options.ranks, id, pairs);
      for (int i = 0; options.change && i < kChanges; ++i) MeasureChange(rank, index, all, times);
      for (int round = 0; !options.change && round < options.rounds; ++round) {
        for (Cell& cell : cells) MeasureCell(rank, index, all, options, cell);
      }
    });
  }
  threads.clear();
  std::filesystem::remove(topology);
  if (options.change)
    PrintChange(times, options);
  else
    PrintGrid(cells, options, cores);
}

}  // namespace
}  // namespace dynamiccl

int main(int argc, char** argv) {
  dynamiccl::Options options;
  CLI::App app{"Measures how exactly emulated links keep to their settings.", "link_precision_bench"};
  app.add_option("--ranks", options.ranks, "Ranks, half on each of two nodes")
      ->check(CLI::IsMember({2, 4, 8}))
      ->capture_default_str();
  app.add_option("--cores", options.cores, "Cores to use (default: all)")->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds, "Rounds over the grid")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--samples", options.samples, "Latencies measured in a round")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--latencies", options.latencies, "Settings, us")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--bandwidths", options.bandwidths, "Settings, GB/s")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_flag("--change", options.change, "Measures how long an order takes to act instead");
  app.add_flag("--json", options.json, "Prints one JSON object");
  CLI11_PARSE(app, argc, argv);
  dynamiccl::Run(options);
  return 0;
}
