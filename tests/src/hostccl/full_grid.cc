// SPDX-License-Identifier: Apache-2.0
// The full correctness grid of hostccl, on demand. It compares each combination of these with the serial
// reference: every collective, type, operator, algorithm, protocol and number of channels; 1 to 8 ranks on
// one node, two nodes or one node per rank; sizes from 0 to 4 MiB; in place, misaligned and grouped calls.
// A shard is a fixed pseudo-random part of the grid. A run with a state file resumes where it stopped.
// `full_grid --help` prints the options; docs/benchmarking.md states the run time.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>

#include "src/hostccl/algorithms/algorithm_registry.h"
#include "src/hostccl/communicator_init.h"
#include "src/hostccl/hostccl_constants.h"
#include "tests/src/hostccl/random_call.h"
#include "tests/support/spawn_threads.h"

namespace dynamiccl::hostccl {
namespace {

using dynamiccl::testing::CallBuffers;
using dynamiccl::testing::RandomCall;
using dynamiccl::testing::SpawnThreads;

// In elements. The counts lie around the sizes of lines, slots and chunks. Odd ones reach 4 MiB of float32.
constexpr size_t kCounts[] = {0, 1, 2, 3, 7, 31, 64, 65, 1000, 4095, 16385, 65537, 262143, 1048573};
constexpr int kChannels[] = {1, 2, 3, 8};
constexpr size_t kMisalignments[] = {0, 1, 7};
constexpr int kGroups[] = {1, 3};
enum class Nodes { kOne, kTwo, kOneRankEach };
constexpr Nodes kNodes[] = {Nodes::kOne, Nodes::kTwo, Nodes::kOneRankEach};
// One set of communicators runs this many cells before the program writes its progress.
constexpr size_t kCellsAtOnce = 200;

struct Options {
  uint64_t seed = 1;
  std::string shard = "0/1000";
  std::string state;
  double seconds = 0;
  int ranks = 0;
};

struct Progress {
  uint64_t next = 0;  // Index of the next cell in the grid.
  uint64_t passed = 0;
  uint64_t failed = 0;
};

struct Cell {
  RandomCall call;
  int group = 1;
};

// One digit per setting of a cell. The digits are the cell's index in a mixed-radix system.
using Digits = std::array<size_t, 8>;

int NodesOf(Nodes nodes, int n_ranks) {
  return nodes == Nodes::kOne ? 1 : nodes == Nodes::kTwo ? std::min(2, n_ranks) : n_ranks;
}

// The grid for one number of ranks on one arrangement of nodes.
class Grid {
 public:
  Grid(int n_ranks, int n_nodes) : n_ranks_(n_ranks) {
    for (int c = 0; c < kTunableCollectives; ++c) {
      const auto collective = static_cast<Collective>(c);
      for (int a = 0; a < kAlgorithms; ++a) {
        for (int p = 0; p < kProtocols; ++p) {
          const CollectiveConfig config{static_cast<Algorithm>(a), static_cast<Protocol>(p), 1};
          const bool supported =
              SupportedConfigs(collective).test(ConfigIndex(config.algorithm, config.protocol));
          if (supported && RunsOn(config.algorithm, n_ranks, n_nodes)) pairs_.push_back({collective, config});
        }
      }
    }
    radices_ = {pairs_.size(),
                std::size(kCounts),
                kDataTypes,
                kReduceOps,
                std::size(kChannels),
                2,
                std::size(kMisalignments),
                std::size(kGroups)};
  }

  uint64_t size() const {
    return std::accumulate(radices_.begin(), radices_.end(), uint64_t{1}, std::multiplies<>());
  }

  // AllGather and Broadcast reduce nothing, so one operator is enough for them.
  bool Distinct(uint64_t index) const {
    const Digits digits = DigitsOf(index);
    const Collective collective = pairs_[digits[0]].first;
    return digits[3] == 0 || (collective != Collective::kAllGather && collective != Collective::kBroadcast);
  }

  Cell At(uint64_t index) const {
    const Digits digits = DigitsOf(index);
    Cell cell;
    auto& operation = cell.call.operation;
    operation.collective = pairs_[digits[0]].first;
    operation.config = pairs_[digits[0]].second;
    operation.count = kCounts[digits[1]];
    operation.data_type = static_cast<DataType>(digits[2]);
    operation.op = static_cast<ReduceOp>(digits[3]);
    operation.config.channels = static_cast<uint8_t>(kChannels[digits[4]]);
    operation.root = static_cast<int>(index % static_cast<uint64_t>(n_ranks_));
    cell.call.in_place = digits[5] != 0;
    cell.call.misalignment = kMisalignments[digits[6]];
    cell.call.data_seed = index * 2654435761;
    cell.group = kGroups[digits[7]];
    return cell;
  }

 private:
  Digits DigitsOf(uint64_t index) const {
    Digits digits;
    for (size_t i = 0; i < digits.size(); ++i) {
      digits[i] = index % radices_[i];
      index /= radices_[i];
    }
    return digits;
  }

  int n_ranks_;
  std::vector<std::pair<Collective, CollectiveConfig>> pairs_;
  Digits radices_{};
};

// The splitmix64 hash spreads neighbouring cells over all shards.
uint64_t Mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

class Run {
 public:
  explicit Run(const Options& options) : options_(options) {}

  // Returns false if a cell failed.
  bool Everything();
  bool ReadShard();

 private:
  bool OneGrid(int n_ranks, Nodes nodes, const Grid& grid, uint64_t base);
  void RunCells(int n_ranks, const Grid& grid, const std::vector<uint64_t>& indices);
  bool RunCell(const std::shared_ptr<Communicator>& communicator, const Cell& cell);
  bool OutOfTime() const;
  void ReadState();
  void WriteState() const;

  Options options_;
  uint64_t part_ = 0;
  uint64_t parts_ = 1;
  Progress progress_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex print_;
};

bool Run::ReadShard() {
  char after = 0;
  unsigned long long part = 0, parts = 0;
  if (std::sscanf(options_.shard.c_str(), "%llu/%llu%c", &part, &parts, &after) != 2 || part >= parts)
    return false;
  part_ = part;
  parts_ = parts;
  return true;
}

bool Run::OutOfTime() const {
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin_;
  return options_.seconds > 0 && spent.count() > options_.seconds;
}

// Ignores a state that another shard or seed has written.
void Run::ReadState() {
  std::ifstream file(options_.state);
  std::string shard;
  uint64_t seed = 0;
  Progress read;
  if (file >> shard >> seed >> read.next >> read.passed >> read.failed && shard == options_.shard &&
      seed == options_.seed)
    progress_ = read;
}

void Run::WriteState() const {
  if (options_.state.empty()) return;
  const std::string fresh = options_.state + ".new";
  std::ofstream(fresh) << options_.shard << ' ' << options_.seed << ' ' << progress_.next << ' '
                       << progress_.passed << ' ' << progress_.failed << '\n';
  std::filesystem::rename(fresh, options_.state);
}

bool Run::RunCell(const std::shared_ptr<Communicator>& communicator, const Cell& cell) {
  CommunicatorPlan plan{communicator, {}, {}, {}};
  std::vector<std::unique_ptr<CallBuffers>> buffers;
  for (int member = 0; member < cell.group; ++member) {
    RandomCall call = cell.call;
    call.data_seed += static_cast<uint64_t>(member) * 1000;
    buffers.push_back(std::make_unique<CallBuffers>(call, communicator->rank(), communicator->n_ranks()));
    // A call of no elements ends before it reaches a launch.
    if (call.operation.count > 0) plan.collectives.push_back(buffers.back()->Operation());
  }
  const ncclResult_t result = plan.collectives.empty() ? ncclSuccess : RunLaunch({&plan, 1});
  bool right = result == ncclSuccess;
  for (size_t member = 0; right && member < buffers.size(); ++member)
    right = buffers[member]->FirstMismatch() == -1;
  if (right) return true;
  const std::lock_guard lock(print_);
  fmt::print("FAILED rank {} of {}, {} nodes, group of {}, result {}: {}\n", communicator->rank(),
             communicator->n_ranks(), communicator->info().n_nodes, cell.group, static_cast<int>(result),
             cell.call.Describe());
  return false;
}

void Run::RunCells(int n_ranks, const Grid& grid, const std::vector<uint64_t>& indices) {
  const auto id = MakeUniqueId();
  std::vector<std::atomic<bool>> wrong(indices.size());
  SpawnThreads(n_ranks, [&](int rank) {
    const auto made =
        id ? InitCommunicator({.n_ranks = n_ranks, .rank = rank, .id = *id}) : tl::unexpected(id.error());
    if (!made) fmt::print("FAILED: no communicator of {} ranks: {}\n", n_ranks, made.error().message);
    for (size_t i = 0; i < indices.size(); ++i) {
      if (!made || !RunCell(*made, grid.At(indices[i]))) wrong[i] = true;
    }
  });
  for (const std::atomic<bool>& cell : wrong) ++(cell ? progress_.failed : progress_.passed);
}

// Returns false if the time is over.
bool Run::OneGrid(int n_ranks, Nodes nodes, const Grid& grid, uint64_t base) {
  const std::string file =
      fmt::format("{}/full_grid-{}.toml", std::filesystem::temp_directory_path().string(), ::getpid());
  std::ofstream(file) << "version = 1\nnodes = " << NodesOf(nodes, n_ranks) << "\n";
  ::setenv("HOSTCCL_TOPOLOGY", file.c_str(), 1);
  std::vector<uint64_t> indices;
  bool more = true;
  const uint64_t first = progress_.next > base ? progress_.next - base : 0;
  for (uint64_t index = first; more && index < grid.size(); ++index) {
    const bool mine = Mixed(base + index + options_.seed * 0x10001) % parts_ == part_;
    if (mine && grid.Distinct(index)) indices.push_back(index);
    if (indices.size() < kCellsAtOnce && index + 1 < grid.size()) continue;
    RunCells(n_ranks, grid, indices);
    indices.clear();
    progress_.next = base + index + 1;
    WriteState();
    more = !OutOfTime();
  }
  std::filesystem::remove(file);
  return more;
}

bool Run::Everything() {
  if (!options_.state.empty()) ReadState();
  const uint64_t before = progress_.passed + progress_.failed;
  uint64_t base = 0;
  bool more = true;
  for (int n_ranks = 1; n_ranks <= 8; ++n_ranks) {
    if (options_.ranks != 0 && n_ranks != options_.ranks) continue;
    for (const Nodes nodes : kNodes) {
      if (nodes != Nodes::kOne && n_ranks <= (nodes == Nodes::kTwo ? 1 : 2))
        continue;  // This arrangement equals the one with one or two nodes.
      const Grid grid(n_ranks, NodesOf(nodes, n_ranks));
      const bool done = progress_.next >= base + grid.size();
      if (more && !done) {
        more = OneGrid(n_ranks, nodes, grid, base);
        fmt::print("{} ranks on {} nodes: {} of {} cells of the grid passed so far, {} failed\n", n_ranks,
                   NodesOf(nodes, n_ranks), progress_.passed, base + grid.size(), progress_.failed);
        std::fflush(stdout);
      }
      base += grid.size();
    }
  }
  fmt::print("shard {}, seed {}: {} cells now, {} passed and {} failed in all, of a grid of {}{}\n",
             options_.shard, options_.seed, progress_.passed + progress_.failed - before, progress_.passed,
             progress_.failed, base,
             more ? "" : "; stopped at the time limit, the same command with --state goes on");
  return progress_.failed == 0;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("The full correctness grid of hostccl");
  app.add_option("--shard", options.shard, "Part K of N of the grid, as K/N; 0/1 is all of it")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Which cells fall into which shard")->capture_default_str();
  app.add_option("--state", options.state, "File to keep progress in; the same command goes on from there");
  app.add_option("--seconds", options.seconds, "Stop after so long; 0: at the end");
  app.add_option("--ranks", options.ranks, "Only with so many ranks, 1 to 8; 0: all")
      ->check(CLI::Range(0, 8));
  CLI11_PARSE(app, argc, argv);
  Run run(options);
  if (!run.ReadShard()) {
    fmt::print(stderr, "error: --shard '{}' is not K/N with K below N\n  hint: 0/1 is the whole grid\n",
               options.shard);
    return 2;
  }
  return run.Everything() ? 0 : 1;
}

}  // namespace
}  // namespace dynamiccl::hostccl

int main(int argc, char** argv) {
  return dynamiccl::hostccl::Main(argc, argv);
}
