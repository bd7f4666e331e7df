// SPDX-License-Identifier: Apache-2.0
// Measures what the preloaded object adds to an NCCL call, in nanoseconds on the issuing thread. Processes
// without the object and with it in each mode take turns. They use an NCCL that does nothing.
//
//   warm       calls follow each other directly (default)
//   --cold     single calls, after other data and other code have gone through the caches
//   --child    runs only the calls, in this process, for profilers
//   --varied   no two sequences of calls are alike; otherwise a sequence of 16 calls repeats, as in a
//              training step
#include <sys/mman.h>
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

#include "benchmarks/idle_nccl/idle_nccl.h"
#include "src/base/statistics.h"
#include "src/nccl_abi/nccl_api.h"

namespace {

namespace fs = std::filesystem;

// The command line.
struct Options {
  std::string preload =
      fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib/libdynamiccl.so";
  std::string policy;
  int rounds = 9;
  // Number of calls in a process. 0 means 20000 warm calls or 200 cold calls.
  int calls = 0;
  bool json = false;
  bool cold = false;
  bool varied = false;
  bool child = false;
};

// Nanoseconds of a call: the median of one process (warm), or a single call (cold).
struct Sample {
  double call = -1;
  // The tuner's part of a cold call; 0 without a tuner.
  double question = 0;
};

// One way to run the calls.
struct Mode {
  std::string name;
  // Variables of the child. If empty, the child runs without the object.
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<Sample> samples;
  bool varied = false;
};

double Nanoseconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - since).count();
}

// Owns a communicator and issues the sequence of calls.
class IssuedCalls {
 public:
  explicit IssuedCalls(bool varied) : varied_(varied) {
    ncclUniqueId id{};
    ncclGetUniqueId(&id);
    ncclCommInitRank(&comm_, 1, id, 0);
  }
  ~IssuedCalls() { ncclCommDestroy(comm_); }
  // Issues the i-th call. The sixteen sizes are several keys, but fewer than the decision table holds.
  void Issue(int i) {
    size_t count = size_t{64} << (i % 16);
    // The changed size has the same key.
    if (varied_) count += static_cast<uint32_t>(i) * 2654435761u >> 28;
    ncclAllReduce(data_, data_, count, ncclFloat32, ncclSum, comm_, nullptr);
  }

 private:
  const bool varied_;
  ncclComm_t comm_ = nullptr;
  float data_[1024] = {};
};

// Prints the median time of a call over batches. An interruption affects only few batches.
void MeasureWarm(int calls, bool varied) {
  constexpr int kBatch = 500;
  IssuedCalls issued(varied);
  std::vector<double> batches;
  for (int done = 0; done < calls; done += kBatch) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kBatch; ++i) issued.Issue(done + i);
    batches.push_back(Nanoseconds(start) / kBatch);
  }
  std::printf("%.2f 0\n", dynamiccl::Median(batches));
}

// Stands for a job's work between two calls: it touches its own data and runs its own code, which drives
// other data and code out of the caches.
class OtherWork {
 public:
  OtherWork() {
    code_ = static_cast<char*>(
        ::mmap(nullptr, kCodeBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (code_ == MAP_FAILED) code_ = nullptr;
    if (code_ == nullptr) return;
    for (size_t at = 0; at < kCodeBytes; at += kLine) std::copy_n(kReturn, sizeof(kReturn), code_ + at);
    ::mprotect(code_, kCodeBytes, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(code_, code_ + kCodeBytes);
  }
  ~OtherWork() { ::munmap(code_, kCodeBytes); }
  void Run() {
    for (size_t at = 0; at < data_.size(); at += kLine) data_[at] = static_cast<char>(data_[at] + 1);
    for (size_t at = 0; code_ != nullptr && at < kCodeBytes; at += kLine)
      reinterpret_cast<void (*)()>(code_ + at)();
  }

 private:
  static constexpr size_t kLine = 64;
  // Number of bytes: far more than a core's second-level cache and its share of the last-level cache.
  static constexpr size_t kDataBytes = size_t{64} << 20;
  // Number of bytes of functions that return at once. There is one function per cache line.
  static constexpr size_t kCodeBytes = 512 << 10;
#if defined(__x86_64__)
  static constexpr char kReturn[] = {'\xc3'};
#elif defined(__aarch64__)
  static constexpr char kReturn[] = {'\xc0', '\x03', '\x5f', '\xd6'};
#endif

  std::vector<char> data_ = std::vector<char>(kDataBytes);
  char* code_ = nullptr;
};

void MeasureCold(int calls, bool varied) {
  // Number of untimed calls. They include the first calls of all keys, and are enough for the recognised
  // structure to settle.
  constexpr int kBefore = 4096;
  IssuedCalls issued(varied);
  for (int i = 0; i < kBefore; ++i) issued.Issue(i);
  idleNcclTimeQuestions(true);
  OtherWork other;
  for (int i = 0; i < calls; ++i) {
    other.Run();
    const auto start = std::chrono::steady_clock::now();
    issued.Issue(kBefore + i);
    const double call = Nanoseconds(start);
    std::printf("%.0f %.0f\n", call, idleNcclQuestions().last_ns);
  }
}

// Runs this program as a child with the mode's environment. Returns what the child measured, or nothing if it
// failed.
std::vector<Sample> RunChild(const Options& options, const Mode& mode) {
  int ends[2];
  if (::pipe(ends) != 0) return {};
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    for (const auto& [name, value] : mode.environment) ::setenv(name.c_str(), value.c_str(), 1);
    const std::string calls = std::to_string(options.calls);
    std::vector<const char*> arguments{"interposer_overhead_bench", "--child", "--calls", calls.c_str()};
    if (options.cold) arguments.push_back("--cold");
    if (mode.varied) arguments.push_back("--varied");
    arguments.push_back(nullptr);
    ::execv("/proc/self/exe", const_cast<char* const*>(arguments.data()));
    ::_exit(127);
  }
  ::close(ends[1]);
  std::vector<Sample> samples;
  FILE* output = ::fdopen(ends[0], "r");
  for (Sample next; output != nullptr && std::fscanf(output, "%lf %lf", &next.call, &next.question) == 2;)
    samples.push_back(next);
  if (output != nullptr) std::fclose(output);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status == 0 ? samples : std::vector<Sample>();
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
  if (options.policy.empty()) return modes;
  const std::pair<std::string, std::string> policy{"DYNAMICCL_POLICY", options.policy};
  modes.push_back({"frozen, policy", {preload, policy}, {}});
  modes.push_back({"... varied calls", {preload, policy}, {}, true});
  modes.push_back({"adaptive, policy", {preload, policy, {"DYNAMICCL_MODE", "adaptive"}}, {}});
  return modes;
}

double QuantileOf(const Mode& mode, double Sample::*part, double q) {
  std::vector<double> values;
  for (const Sample& sample : mode.samples) values.push_back(sample.*part);
  return dynamiccl::QuantileInPlace(values, q);
}

// Returns the summary of a mode. For cold calls it compares the 99th percentile with the median call without
// the object.
nlohmann::json FiguresOf(const Options& options, const Mode& mode, const Mode& alone) {
  const double base = QuantileOf(alone, &Sample::call, 0.5), median = QuantileOf(mode, &Sample::call, 0.5);
  nlohmann::json figures = {{"mode", mode.name}, {"ns_a_call", median}, {"ns_added", median - base}};
  if (!options.cold) {
    figures["least_ns"] = QuantileOf(mode, &Sample::call, 0);
    figures["most_ns"] = QuantileOf(mode, &Sample::call, 1);
    return figures;
  }
  figures["p99_ns"] = QuantileOf(mode, &Sample::call, 0.99);
  figures["p99_ns_added"] = QuantileOf(mode, &Sample::call, 0.99) - base;
  figures["question_ns"] = QuantileOf(mode, &Sample::question, 0.5);
  figures["question_p99_ns"] = QuantileOf(mode, &Sample::question, 0.99);
  return figures;
}

void Print(const nlohmann::json& figures) {
  const auto at = [&](const char* name) { return figures[name].get<double>(); };
  std::printf("%-16s %8.1f ns a call, %8.1f added", figures["mode"].get<std::string>().c_str(),
              at("ns_a_call"), at("ns_added"));
  if (figures.contains("p99_ns"))
    std::printf("; p99 %.0f, %.0f added; tuner's part %.0f, p99 %.0f", at("p99_ns"), at("p99_ns_added"),
                at("question_ns"), at("question_p99_ns"));
  std::puts("");
}

void Report(const Options& options, const std::vector<Mode>& modes) {
  nlohmann::json report = {{"rounds", options.rounds}, {"calls", options.calls}, {"cold", options.cold}};
  for (const Mode& mode : modes) {
    report["modes"].push_back(FiguresOf(options, mode, modes[0]));
    if (!options.json) Print(report["modes"].back());
  }
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
    for (Mode& mode : modes) {
      const std::vector<Sample> samples = RunChild(options, mode);
      mode.samples.insert(mode.samples.end(), samples.begin(), samples.end());
      failed = failed || samples.empty();
    }
  }
  fs::remove_all(folder);
  if (failed) {
    std::fputs("error: a process that was to be measured failed\n", stderr);
    return 4;
  }
  Report(options, modes);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("What the preloaded object adds to an NCCL call.");
  app.add_option("--preload", options.preload, "the object to measure");
  app.add_option("--policy", options.policy, "also measure frozen and adaptive mode with this policy");
  app.add_option("--rounds", options.rounds, "processes per mode")->check(CLI::Range(1, 1000));
  app.add_option("--calls", options.calls, "calls per process; default 20000, cold 200")
      ->check(CLI::Range(100, 100000000));
  app.add_flag("--cold", options.cold, "evict the caches before every call");
  app.add_flag("--varied", options.varied, "with --child: calls that do not repeat");
  app.add_flag("--json", options.json, "print JSON");
  app.add_flag("--child", options.child, "only run the calls, in this process as it is");
  CLI11_PARSE(app, argc, argv);
  if (options.calls == 0) options.calls = options.cold ? 200 : 20000;
  if (!options.child) return Compare(options);
  options.cold ? MeasureCold(options.calls, options.varied) : MeasureWarm(options.calls, options.varied);
  return 0;
}
