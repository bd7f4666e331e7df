// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/guarded_jobs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "src/policy/policy_file.h"
#include "tests/support/sample_policy.h"

namespace dynamiccl::testing {
namespace {

namespace fs = std::filesystem;

template <typename Number>
Number NumberOf(const std::string& word) {
  Number number{};
  std::from_chars(word.data(), word.data() + word.size(), number);
  return number;
}

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

std::vector<LoggedCall> ReadDecisionLog(const std::string& path) {
  std::string text = TextOf(path);
  text.resize(text.rfind('\n') + 1);
  std::vector<LoggedCall> log;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word[8];
    for (std::string& each : word) words >> each;
    log.push_back({NumberOf<uint64_t>(word[1]), NumberOf<uint64_t>(word[3]), word[5], word[6],
                   NumberOf<uint32_t>(word[7].substr(std::min<size_t>(1, word[7].size())))});
  }
  return log;
}

std::map<uint64_t, double> MedianByBytes(const GuardedRun& run, size_t from) {
  std::map<uint64_t, std::vector<double>> by;
  for (size_t i = from; i < run.times.size(); ++i) by[run.times[i].first].push_back(run.times[i].second);
  std::map<uint64_t, double> medians;
  for (auto& [bytes, times] : by) medians[bytes] = Median(std::move(times));
  return medians;
}

double TotalMs(const GuardedRun& run) {
  double sum = 0;
  for (const auto& [bytes, us] : run.times) sum += us;
  return sum / 1000;
}

GuardedJobs::GuardedJobs(const GuardedJobOptions& options) : options_(options) {
  std::string folder = fs::temp_directory_path() / "dynamiccl-guard-XXXXXX";
  folder_ = ::mkdtemp(folder.data());
}

GuardedJobs::~GuardedJobs() {
  if (!options_.keep) fs::remove_all(folder_);
}

GuardedRun GuardedJobs::Run(const Environment& environment, int calls) const {
  return Run(environment, calls, true);
}

GuardedRun GuardedJobs::RunWithout(int calls) const {
  return Run({}, calls, false);
}

GuardedRun GuardedJobs::Run(const Environment& more, int calls, bool preload) const {
  for (int rank = 0; rank < options_.n_ranks; ++rank)
    fs::remove(fmt::format("{}/decisions.{}", folder_, rank));
  JobOptions job;
  job.n_ranks = options_.n_ranks;
  job.rounds = fmt::format("{}", calls);
  job.preload = preload;
  if (!options_.model.empty()) job.also_preload = DYNAMICCL_TEST_MODELLED_TIMES;
  job.seconds = 900;
  job.environment = {{"HOSTCCL_TOPOLOGY", options_.topology},
                     {"HOSTCCL_EMULATE", options_.release},
                     {"JOB_BYTES", options_.bytes},
                     {"JOB_TIMES", "%d/times"},
                     {"DYNAMICCL_LOG", "info"}};
  for (const auto& [name, value] : more) job.environment[name] = value;
  const JobResult result = RunJob(job);
  GuardedRun run;
  run.ok = result.ok();
  run.output = result.output[0];
  run.log = ReadDecisionLog(decision_log());
  for (int rank = 1; rank < options_.n_ranks; ++rank)
    run.ok = run.ok && TextOf(fmt::format("{}/decisions.{}", folder_, rank)) == TextOf(decision_log());
  std::istringstream times(result.Text("times"));
  uint64_t bytes = 0;
  for (double ns = 0; times >> bytes >> ns;) run.times.emplace_back(bytes, ns / 1000);
  if (!run.ok) fmt::print("{}\n", result.AllOutput());
  if (options_.keep)
    fmt::print("files in {} and {}\n", result.folder, folder_);
  else
    fs::remove_all(result.folder);
  return run;
}

Environment GuardedJobs::Adaptive() const {
  Environment environment = {{"DYNAMICCL_MODE", "adaptive"},
                             {"DYNAMICCL_TIMES", options_.timing},
                             {"DYNAMICCL_DECISION_LOG", folder_ + "/decisions.%r"}};
  if (!options_.policy_file.empty())
    environment["DYNAMICCL_POLICY"] = options_.policy_file;
  else if (options_.policy != "none")
    environment["DYNAMICCL_POLICY"] = WritePolicy();
  if (options_.model.empty()) return environment;
  // If calls do not sleep, steps do not take the modelled time. The guard must then recognise no steps, so
  // that it uses the modelled times of calls.
  if (options_.sleep == 0) environment["JOB_ORDER"] = "mixed";
  environment["MODEL_TIMES"] = options_.model;
  environment["MODEL_SLEEP"] = std::to_string(options_.sleep);
  const char* const plugin = options_.release == "2.22" ? "NCCL_TUNER_PLUGIN" : "NCCL_PROFILER_PLUGIN";
  environment[plugin] = DYNAMICCL_TEST_MODELLED_TIMES;
  environment["TEST_DYNAMICCL"] = DYNAMICCL_TEST_PRELOAD;
  return environment;
}

std::string GuardedJobs::WritePolicy() const {
  const size_t slash = options_.policy.find('/');
  const auto policy = test::MakePolicyThatPrefers(*ParseAlgorithm(options_.policy.substr(0, slash)),
                                                  *ParseProtocol(options_.policy.substr(slash + 1)));
  const std::string path = folder_ + "/p.dcpolicy";
  if (!WritePolicyFile(path, *policy)) std::abort();
  return path;
}

}  // namespace dynamiccl::testing
