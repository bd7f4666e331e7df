// SPDX-License-Identifier: Apache-2.0
// Starts the demo's programs with a common log and time limit. Skips programs that an earlier process
// finished, and starts a program that failed once more.
#include "tools/demo/demo_session.h"

#include <spdlog/spdlog.h>

#include <filesystem>

#include "src/base/clock.h"
#include "src/base/progress_line.h"
#include "src/base/sha256.h"
#include "tools/launch/launcher.h"
#include "tools/launch/output_folder.h"
#include "tools/launch/shell_quote.h"
#include "tools/record/recorded_launch.h"
#include "tools/zero/trainer_runs.h"

namespace dynamiccl {
namespace {

namespace fs = std::filesystem;

// Time limit of one program. It is far longer than any program of the demo takes; only a hang reaches it.
constexpr std::chrono::milliseconds kStepLimit = std::chrono::minutes(5);

// Bytes that must be free in the output folder when the demo starts. A whole demo leaves some 150 MB, most of
// it traces; with less free space the disk may fill before the end.
constexpr uintmax_t kNeededBytes = 500'000'000;
// Bytes that one run may need: each of four ranks records into a file of 17 MB before the files are merged.
constexpr uintmax_t kNeededByARun = 100'000'000;

// Fails if a part of the build is missing. The demo needs all parts, including the programs that use
// LibTorch.
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
        HowToGetTorchPrograms());
  }
  return {};
}

// Fails when less than `needed` bytes are free in the folder.
Status CheckRoom(const std::string& folder, uintmax_t needed, const std::string& hint) {
  std::error_code failed;
  const fs::space_info space = fs::space(folder, failed);
  if (failed || space.available >= needed) return {};
  return WithHint(MakeError(ErrorKind::kUnavailable, "'{}' has {} MB left; a demo needs {} MB", folder,
                            space.available / 1'000'000, needed / 1'000'000),
                  hint);
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
  DYNAMICCL_CHECK_OK(session.OpenFolder());
  return session;
}

Status DemoSession::OpenFolder() {
  std::error_code failed;
  fs::create_directories(Output("logs"), failed);
  if (failed) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "cannot create '{}': {}", Output("logs"), failed.message()),
        "name a folder that can be written with -o");
  }
  DYNAMICCL_TRY(lock_, ClaimOutputFolder(output_dir()));
  DYNAMICCL_CHECK_OK(
      CheckRoom(output_dir(), kNeededBytes, "make room there, or name a folder on another disk with -o"));
  const std::string plan = fmt::format("{} demo on {}", plan_.quick ? "quick" : "whole", text_);
  DYNAMICCL_TRY(journal_, DemoJournal::Open(Output("demo.journal"), plan));
  if (journal_->found() > 0)
    spdlog::info("going on after {} runs that an earlier demo finished here", journal_->found());
  return {};
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

// Returns a hash of the keys of all earlier runs, the command and its environment, and the build. Each file
// of the build is represented by its size and modification time.
std::string DemoSession::KeyOf(const DemoRun& run) {
  std::string facts =
      fmt::format("{}\n{}\n{}\n{}\n", key_, run.label, run.plan.n_ranks, ShellQuote(run.plan.command));
  for (const auto& [name, value] : run.plan.environment) facts += fmt::format("{}={}\n", name, value);
  for (const std::string& file :
       {run.plan.command.front(), installation_.preload, installation_.hostccl_dir + "/libnccl.so.2"}) {
    std::error_code ignored;
    facts += fmt::format("{} {}\n", fs::file_size(file, ignored),
                         fs::last_write_time(file, ignored).time_since_epoch().count());
  }
  return HexDigestOf(facts);
}

Status DemoSession::Start(const DemoRun& run) {
  LaunchOutcome outcome;
  if (run.trace.empty()) {
    DYNAMICCL_TRY(outcome, Launch(run.plan));
  } else {
    const Result<RecordedLaunch> launch = LaunchRecorded(run.plan, run.trace);
    if (!launch) {
      RemoveParts(run.trace);
      return tl::unexpected<Error>(launch.error());
    }
    outcome = launch->outcome;
  }
  interrupted_by_ = outcome.interrupted_by;
  if (outcome.ok()) return {};
  return WithHint(
      MakeError(ErrorKind::kPeerFailed, "demo, step '{}', run '{}': {}", step_, run.label, Describe(outcome)),
      fmt::format("see {}\n        the command was: {}", run.plan.output_path, ShellQuote(run.plan.command)));
}

Status DemoSession::Run(DemoRun run) {
  key_ = KeyOf(run);
  if (!run.trace.empty()) run.outputs.push_back(run.trace);
  DYNAMICCL_TRY(bool finished, journal_->SkipFinished(key_, run.outputs));
  if (!finished) {
    run.plan.output_path = Output("logs/" + step_ + ".log");
    run.plan.time_limit = kStepLimit;
    Status done = Start(run);
    if (!done) DYNAMICCL_CHECK_OK(CheckDisk());
    if (!done && interrupted_by_ == 0) {
      Say(fmt::format("{} failed and is started once more: {}", run.label, done.error().message));
      result_.repeated.push_back(run.label);
      done = Start(run);
    }
    DYNAMICCL_CHECK_OK(done);
    DYNAMICCL_CHECK_OK(journal_->Finish(key_));
  }
  finished_.insert(run.label);
  return {};
}

Status DemoSession::CheckDisk() {
  const Status room =
      CheckRoom(output_dir(), kNeededByARun,
                "make room there and start it again: it goes on after the runs that are finished");
  disk_is_full_ = !room;
  return room;
}

Status DemoSession::GoOnWithout(const std::string& label, const Error& error) {
  if (interrupted_by_ != 0 || disk_is_full_) return tl::unexpected(error);
  spdlog::warn("{}; going on without {}", error.message, label);
  result_.missing.push_back({label, error.message});
  return {};
}

}  // namespace dynamiccl
