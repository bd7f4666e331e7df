// SPDX-License-Identifier: Apache-2.0
// Launches the trainer and reads its report.
#include "tools/zero/trainer_runs.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "tools/launch/installation.h"
#include "tools/launch/launcher.h"
#include "tools/launch/shell_quote.h"
#include "tools/report/json_output.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

// Time limit of one run, far longer than any compared run takes.
constexpr std::chrono::milliseconds kLimit = std::chrono::minutes(30);

void TakeLine(const Json& line, TrainerReport& report) {
  if (line.contains("step_ms")) report.step_ms.push_back(line.at("step_ms"));
  if (line.contains("held_out_bits_per_byte"))
    report.held_out_bits_per_byte = line.at("held_out_bits_per_byte");
  if (line.contains("evaluated_after_step"))
    report.evaluations.push_back({line.at("evaluated_after_step"), line.at("held_out_bits_per_byte")});
  if (!line.contains("memory")) return;
  for (const auto& [name, value] : line.at("memory").items()) {
    report.peak_bytes[name] = value.is_object() ? value.at("peak").get<int64_t>() : value.get<int64_t>();
  }
  report.sent_bytes_a_step = line.at("sent_bytes").get<double>() / static_cast<double>(report.step_ms.size());
}

// True if a rank of a run that failed wrote that it lacks memory. The exit codes do not tell which rank
// lacked memory: the other ranks fail too, and one of them may end before it.
bool RanOutOfMemory(const std::string& log) {
  const auto text = ReadTextFile(log);
  return text && text->find("out of memory") != std::string::npos;
}

std::string CachedText() {
  return (CacheFolder() / "shakespeare").string();
}

}  // namespace

Result<TrainerReport> ReadTrainerReport(const std::string& path) {
  DYNAMICCL_TRY(const std::string text, ReadTextFile(path));
  TrainerReport report;
  std::istringstream lines(text);
  try {
    for (std::string line; std::getline(lines, line);) TakeLine(Json::parse(line), report);
  } catch (const Json::exception& error) {
    return MakeError(ErrorKind::kCorrupt, "{}: {}", path, error.what());
  }
  if (report.step_ms.empty() || report.peak_bytes.empty())
    return MakeError(ErrorKind::kCorrupt, "{}: the trainer did not report to its end", path);
  return report;
}

Result<TrainerRuns> TrainerRuns::Open(LaunchPlan plan) {
  TrainerRuns runs(std::move(plan));
  std::string pattern = (fs::temp_directory_path() / "dynamiccl-zero-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr)
    return MakeError(ErrorKind::kUnavailable, "cannot create '{}': {}", pattern, ErrnoText(errno));
  runs.folder_ = pattern;
  return runs;
}

TrainerRuns::TrainerRuns(TrainerRuns&& other) noexcept
    : plan_(std::move(other.plan_)), folder_(std::exchange(other.folder_, {})), keep_(other.keep_) {}

TrainerRuns::~TrainerRuns() {
  std::error_code ignored;
  if (!folder_.empty() && !keep_) fs::remove_all(folder_, ignored);
}

Result<TrainerReport> TrainerRuns::Train(const std::vector<std::string>& options) {
  const std::string json = folder_ + "/report.jsonl";
  LaunchPlan plan = plan_;
  plan.output_path = folder_ + "/log";
  plan.time_limit = kLimit;
  plan.command.insert(plan.command.end(), {"train", "--json", json});
  plan.command.insert(plan.command.end(), options.begin(), options.end());
  std::error_code ignored;
  fs::remove(plan.output_path, ignored);
  fs::remove(json, ignored);
  DYNAMICCL_TRY(const LaunchOutcome outcome, Launch(plan));
  if (outcome.ok()) return ReadTrainerReport(json);
  if (RanOutOfMemory(plan.output_path)) return MakeError(ErrorKind::kUnavailable, "out of memory");
  keep_ = true;
  return WithHint(
      MakeError(ErrorKind::kPeerFailed, "{}", Describe(outcome)),
      fmt::format("see {}\n        the command was: {}", plan.output_path, ShellQuote(plan.command)));
}

Result<std::string> FindTrainingText(const std::string& named) {
  const std::string path = named.empty() ? CachedText() : fs::absolute(named).string();
  std::error_code ignored;
  if (fs::exists(path, ignored)) return path;
  if (!named.empty()) {
    return WithHint(MakeError(ErrorKind::kNotFound, "no text at '{}'", named),
                    "--data takes a text file or a folder of them");
  }
  return WithHint(MakeError(ErrorKind::kNotFound, "there is no text to train on in '{}'", path),
                  "run tools/setup/fetch_shakespeare.sh, or give a text file with --data FILE");
}

}  // namespace dynamiccl
