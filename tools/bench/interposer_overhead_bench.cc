// SPDX-License-Identifier: Apache-2.0
// What the preloaded object adds to an NCCL call, in nanoseconds on the issuing thread: processes without it,
// and with it in each mode, in turn, over an NCCL that does nothing. `--child` runs the calls in this
// process, for profilers.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "src/nccl_abi/nccl_api.h"

namespace {

namespace fs = std::filesystem;

struct Options {
  std::string preload =
      fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib/libdynamiccl.so";
  std::string policy;
  int rounds = 9;
  int calls = 20000;
  bool json = false;
  bool child = false;
};

struct Mode {
  std::string name;
  std::vector<std::pair<std::string, std::string>> environment;  // empty: without the object
  std::vector<double> nanoseconds;                               // a call, by round
};

// Median over batches of the time a call takes: what an interruption adds falls into few batches.
double MeasureCalls(int calls) {
  constexpr int kBatch = 500;
  ncclUniqueId id{};
  ncclComm_t comm = nullptr;
  float data[1024] = {};
  ncclGetUniqueId(&id);
  ncclCommInitRank(&comm, 1, id, 0);
  std::vector<double> batches;
  for (int done = 0; done < calls; done += kBatch) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kBatch; ++i) {
      // Sixteen sizes: more keys than one, fewer than the table has.
      ncclAllReduce(data, data, size_t{64} << (i % 16), ncclFloat32, ncclSum, comm, nullptr);
    }
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    batches.push_back(time.count() / kBatch);
  }
  ncclCommDestroy(comm);
  std::nth_element(batches.begin(), batches.begin() + static_cast<long>(batches.size() / 2), batches.end());
  return batches[batches.size() / 2];
}

// Runs this program as a child in the mode's environment; what it measured, or -1.
double RunChild(const Options& options, const Mode& mode) {
  int ends[2];
  if (::pipe(ends) != 0) return -1;
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    for (const auto& [name, value] : mode.environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::execl("/proc/self/exe", "interposer_overhead_bench", "--child", "--calls",
            std::to_string(options.calls).c_str(), nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  double nanoseconds = -1;
  FILE* output = ::fdopen(ends[0], "r");
  if (output == nullptr || std::fscanf(output, "%lf", &nanoseconds) != 1) nanoseconds = -1;
  if (output != nullptr) std::fclose(output);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status == 0 ? nanoseconds : -1;
}

std::vector<Mode> Modes(const Options& options, const std::string& folder) {
  const std::pair<std::string, std::string> preload{"LD_PRELOAD", options.preload};
  std::ofstream(folder + "/rules.csv") << "allreduce,0,4096,ring,simple,2,-1,-1\n";
  std::vector<Mode> modes{
      {"alone", {}, {}},
      {"off", {preload}, {}},
      {"observe", {preload, {"DYNAMICCL_TRACE", folder + "/%p.ctrace"}}, {}},
      {"frozen, rules", {preload, {"DYNAMICCL_RULES", folder + "/rules.csv"}}, {}},
  };
  if (!options.policy.empty())
    modes.push_back({"frozen, policy", {preload, {"DYNAMICCL_POLICY", options.policy}}, {}});
  return modes;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Report(const Options& options, const std::vector<Mode>& modes) {
  nlohmann::json report;
  const double alone = Median(modes[0].nanoseconds);
  for (const Mode& mode : modes) {
    const double median = Median(mode.nanoseconds);
    const auto [least, most] = std::minmax_element(mode.nanoseconds.begin(), mode.nanoseconds.end());
    report["modes"].push_back({{"mode", mode.name},
                               {"ns_a_call", median},
                               {"ns_added", median - alone},
                               {"least_ns", *least},
                               {"most_ns", *most}});
    if (!options.json)
      std::printf("%-16s %8.1f ns a call, %8.1f added\n", mode.name.c_str(), median, median - alone);
  }
  report["rounds"] = options.rounds;
  report["calls"] = options.calls;
  if (options.json) std::puts(report.dump(2).c_str());
}

int Compare(const Options& options) {
  if (!fs::exists(options.preload)) {
    std::fprintf(stderr, "error: %s: no such file\n  hint: --preload PATH of libdynamiccl.so\n",
                 options.preload.c_str());
    return 2;
  }
  std::string folder = fs::temp_directory_path() / "interposer-overhead-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return 3;
  std::vector<Mode> modes = Modes(options, folder);
  bool failed = false;
  for (int round = 0; round < options.rounds; ++round) {
    for (Mode& mode : modes) mode.nanoseconds.push_back(RunChild(options, mode));
  }
  for (const Mode& mode : modes) failed = failed || Median(mode.nanoseconds) < 0;
  Report(options, modes);
  fs::remove_all(folder);
  return failed ? 4 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("What the preloaded object adds to an NCCL call.");
  app.add_option("--preload", options.preload, "the object to measure");
  app.add_option("--policy", options.policy, "also measure frozen mode with this policy");
  app.add_option("--rounds", options.rounds, "processes per mode")->check(CLI::Range(1, 1000));
  app.add_option("--calls", options.calls, "calls per process")->check(CLI::Range(500, 100000000));
  app.add_flag("--json", options.json, "print JSON");
  app.add_flag("--child", options.child, "only run the calls, in this process as it is");
  CLI11_PARSE(app, argc, argv);
  if (!options.child) return Compare(options);
  std::printf("%.2f\n", MeasureCalls(options.calls));
  return 0;
}
