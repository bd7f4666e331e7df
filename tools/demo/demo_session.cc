// SPDX-License-Identifier: Apache-2.0
#include "tools/demo/demo_session.h"

#include <spdlog/spdlog.h>

#include <filesystem>

#include "src/base/clock.h"
#include "tools/launch/launcher.h"
#include "tools/launch/shell_quote.h"
#include "tools/record/recorded_launch.h"
#include "tools/zero/training_text.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

// Far beyond any step of a demo: only a hang gets here.
constexpr std::chrono::milliseconds kStepLimit = std::chrono::minutes(5);

Status CheckParts(const Installation& installation) {
  struct Part {
    const char* name;
    const std::string& path;
  };
  for (const Part& part :
       {Part{"libdynamiccl.so", installation.preload}, Part{"hostccl", installation.hostccl_dir},
        Part{"dynamiccl-agents", installation.agents}, Part{"dynamiccl-zero", installation.zero}}) {
    if (!part.path.empty()) continue;
    return WithHint(
        MakeError(ErrorKind::kUnsupported, "the demo needs {}, which this build lacks", part.name),
        "configure with -DDYNAMICCL_BUILD_TORCH=ON (tools/setup/install.sh installs LibTorch) and build all");
  }
  return {};
}

// "4 min", "50 s": rounded, since it is an estimate.
std::string RoughTime(double seconds) {
  return seconds >= 90 ? fmt::format("{:.0f} min", seconds / 60) : fmt::format("{:.0f} s", seconds);
}

}  // namespace

Result<DemoSession> DemoSession::Open(const DemoOptions& options) {
  DemoSession session;
  session.options_ = options;
  session.options_.output_dir = fs::absolute(options.output_dir).lexically_normal().string();
  session.plan_ = MakeDemoPlan(options.quick);
  session.started_ns_ = MonotonicNanoseconds();
  DYNAMICCL_TRY(session.installation_, FindInstallation(options.home));
  DYNAMICCL_CHECK_OK(CheckParts(session.installation_));
  DYNAMICCL_TRY(session.text_, FindTrainingText(options.text));
  std::error_code failed;
  fs::create_directories(session.Output("logs"), failed);
  if (failed) {
    return MakeError(ErrorKind::kInvalidArgument, "cannot create '{}': {}", session.Output("logs"),
                     failed.message());
  }
  return session;
}

void DemoSession::BeginStep(const std::string& name, const std::string& sentence, double remaining_s) {
  step_ = name;
  std::error_code ignored;
  fs::remove(Output("logs/" + step_ + ".log"), ignored);
  spdlog::info("[{}/{}] {} (at most {} left)", ++step_number_, kDemoSteps, sentence, RoughTime(remaining_s));
}

void DemoSession::Say(const std::string& line) const {
  spdlog::info("      {}", line);
}

double DemoSession::Elapsed() const {
  return static_cast<double>(MonotonicNanoseconds() - started_ns_) * 1e-9;
}

void DemoSession::Prepare(LaunchPlan& plan) {
  plan.output_path = Output("logs/" + step_ + ".log");
  plan.time_limit = kStepLimit;
}

Status DemoSession::Judge(const LaunchOutcome& outcome, const LaunchPlan& plan) {
  if (outcome.interrupted_by != 0) interrupted_by_ = outcome.interrupted_by;
  if (outcome.ok()) return {};
  return WithHint(
      MakeError(ErrorKind::kPeerFailed, "demo, step '{}': {}", step_, Describe(outcome)),
      fmt::format("see {}\n        the command was: {}", plan.output_path, ShellQuote(plan.command)));
}

Status DemoSession::Run(LaunchPlan plan) {
  Prepare(plan);
  DYNAMICCL_TRY(const LaunchOutcome outcome, Launch(plan));
  return Judge(outcome, plan);
}

Status DemoSession::RunProgram(std::vector<std::string> command) {
  return Run({.command = std::move(command)});
}

Status DemoSession::RunRecorded(LaunchPlan plan, const std::string& trace) {
  Prepare(plan);
  DYNAMICCL_TRY(const RecordedLaunch launch, LaunchRecorded(plan, trace));
  return Judge(launch.outcome, plan);
}

}  // namespace dynamiccl
