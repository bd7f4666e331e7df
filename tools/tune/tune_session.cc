// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/tune_session.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "src/base/clock.h"
#include "tools/ab/job_in_turns.h"
#include "tools/ab/rule_settings.h"
#include "tools/advise/advice.h"
#include "tools/advise/trainer_options.h"
#include "tools/launch/output_folder.h"
#include "tools/launch/shell_quote.h"
#include "tools/launch/signal_scope.h"
#include "tools/launch/temporary_folder.h"
#include "tools/record/recorded_launch.h"
#include "tools/tune/channel_bounds.h"
#include "tools/tune/config_turns.h"
#include "tools/tune/job_description.h"
#include "tools/tune/megatron_settings.h"
#include "tools/tune/setting_receipt.h"
#include "tools/tune/stalled_run.h"
#include "tools/tune/trainer_settings.h"
#include "tools/tune/tune_plan.h"
#include "tools/version.h"

namespace dynamiccl {
namespace {

constexpr double kSecondsOfNs = 1e-9;
// Starts of the job that the final needs: the two finalists and the unchanged job, in each of the six turns
// that an interval needs.
constexpr size_t kStartsOfFinal = 18;
// Estimated number of starts of the job that combined candidates need before the final.
constexpr size_t kStartsOfHalving = 14;

// The most starts of the unchanged job in a turn. It is started again, while the budget lasts, if its steps
// are not those of the watched start: a start may end in an evaluation, whose calls repeat too. If three
// starts in a row differ from the watched one, the watched one was the odd one.
constexpr int kMostTries = 3;

// The least number of candidates with a single change that are tried. With fewer, only settings or only
// configs would be tried, and not both.
constexpr size_t kFewestSingles = 4;

std::string BucketsOf(const RecordedStep& step) {
  std::string text;
  for (const WireOperation& operation : step.operations)
    if (operation.collective == Collective::kAllReduce) text += std::to_string(operation.Bytes()) + " ";
  return text;
}

// Value of DYNAMICCL_TIMES for the first run of the job, which is only watched. The later runs, which are
// compared, time no calls, because timing itself takes time.
constexpr const char* kAllTimes = "all";
constexpr const char* kNoTimes = "0";

// The most starts of the job in which configs take turns.
constexpr int kMostStartsInTurns = 3;

// Name under which the journal keeps a start of the job in which configs take turns. `number` counts from 1.
std::string ConfigsInTurns(int number) {
  return number == 1 ? "configs in turns" : fmt::format("configs in turns, start {}", number);
}

// Returns the time at which a run that began at `begun_ns` ended by itself or reached its limit. Times are
// those of CLOCK_REALTIME. The processes of a job that is ended at its limit may take seconds to end.
int64_t EndOf(const LaunchOutcome& outcome, int64_t begun_ns, std::chrono::milliseconds limit) {
  return begun_ns + (outcome.timed_out ? std::chrono::nanoseconds(limit).count() : outcome.wall_ns);
}

auto Interrupted(const LaunchOutcome& outcome) {
  return WithHint(MakeError(ErrorKind::kPeerFailed, "interrupted: {}", Describe(outcome)),
                  "the same command goes on where this one ended; the job's own settings were not touched");
}

// Returns the end of the hint for a user whose job ended well in its first start, but showed no step. Empty
// if the job failed.
std::string WhatAStepNeeds(const JobStart& start, const WatchedRun& run, double start_limit_s) {
  if (run.why_no_step.empty() || !start.failure.starts_with(run.why_no_step)) return {};
  if (run.when.last_ns == 0) return fmt::format("; {}", kCallsNoNcclHint);
  return fmt::format("; a step has to repeat {} times within --start-limit ({:.0f} s)", kFewestSteps,
                     start_limit_s);
}

// Returns 0 for a file that does not exist.
size_t BytesOf(const std::string& path) {
  std::error_code ignored;
  const auto bytes = std::filesystem::file_size(path, ignored);
  return ignored ? 0 : static_cast<size_t>(bytes);
}

// Writes into `start` what a run proves about a candidate. Receipts prove its settings, calls that rules
// decided prove its config, and the run's output proves its bounds on the channels.
void Prove(const Candidate& candidate, const CommandWords& program, const WatchedRun& run,
           const std::string& output, JobStart& start) {
  const CommandWords command = WithValues(program, candidate.values);
  for (const SettingReceipt& receipt : ReceiptsOfCommand(candidate.values, command, run)) {
    start.seen += (start.seen.empty() ? "" : "; ") + receipt.how;
    if (receipt.standing == SettingStanding::kNotInEffect)
      start.failure = fmt::format("{} is not in effect: {}", receipt.setting, receipt.how);
  }
  if (!start.failure.empty()) return;
  if (ChoosesConfigs(candidate.config) && run.decided_by_rules == 0)
    start.failure = "not in effect: NCCL offers " + candidate.config + " for none of the calls";
  else if (BoundsChannels(candidate.config))
    if (const std::string why = WhyBoundsStay(output); !why.empty()) start.failure = "not in effect: " + why;
}

}  // namespace

double TuneResult::OwnStepMs() const {
  std::vector<double> own;
  for (const auto& [turn, step_ms] : tried.front().step_ms) own.push_back(step_ms);
  return own.empty() ? watched_ms : Median(own);
}

double TuneSession::Elapsed() const {
  return static_cast<double>(MonotonicNanoseconds() - begun_ns_) * kSecondsOfNs + earlier_s_;
}

std::chrono::milliseconds TuneSession::StartLimit() const {
  return std::chrono::milliseconds(static_cast<int64_t>(given_.start_limit_s * 1e3));
}

Result<TuneResult> TuneSession::Run() {
  // A signal that comes between two starts of the job ends the tune at the next start, which can say how to
  // go on.
  const SignalScope signals;
  begun_ns_ = MonotonicNanoseconds();
  result_.command = ShellQuote(line_.program());
  result_.budget_s = given_.budget_s;
  const LaunchOptions& launch = given_.launch;
  const char* const library =
      launch.force_hostccl ? " --hostccl" : (launch.force_no_hostccl ? " --no-hostccl" : "");
  const std::string plan =
      fmt::format("{}: -n {}{} --home '{}' --topology '{}' --policy '{}' --start-limit {} --try '{}' -- {}",
                  kVersion, launch.n_ranks, library, launch.home, launch.runtime.topology,
                  launch.runtime.policy, given_.start_limit_s, fmt::join(given_.only, " "), result_.command);
  DYNAMICCL_TRY(TuneJournal journal,
                TuneJournal::Open(File("tune.journal"), TunePlan(plan, line_.program(), launch.runtime)));
  journal_.emplace(std::move(journal));
  BeginLog(File("job.log"));
  if (journal_->found() > 0) spdlog::info("going on after {} starts of an earlier tune", journal_->found());
  DYNAMICCL_CHECK_OK(Observe());
  DYNAMICCL_TRY(CandidateList list, ListOf());
  DYNAMICCL_TRY(const SearchShape shape, Shape(list));
  TuneSearch search(list, shape.level_rounds);
  result_.notes = list.left_out;
  result_.not_tried = list.not_tried;
  DYNAMICCL_CHECK_OK(RunTurns(search));
  result_.tried = search.tried();
  for (size_t i = 0; i < result_.tried.size(); ++i) result_.ratios.push_back(search.RatioOf(i));
  for (const TriedCandidate& tried : result_.tried) result_.seen.push_back(seen_[tried.candidate.Name()]);
  result_.best = search.Best();
  return std::move(result_);
}

Result<LaunchOutcome> TuneSession::Launch(const Candidate& candidate, const std::string& times,
                                          const std::string& folder) {
  LaunchOptions launch = given_.launch;
  launch.runtime.times = times;
  Watch(folder, launch.runtime);
  if (!candidate.values.empty()) {
    launch.runtime.framework_settings = folder + "/settings.json";
    DYNAMICCL_CHECK_OK(WriteTextFile(launch.runtime.framework_settings,
                                     FrameworkSettingsText({.values = candidate.values})));
  }
  if (!candidate.config.empty()) {
    launch.runtime.rules = folder + "/rules.toml";
    DYNAMICCL_TRY(const std::string rules, RulesOfSetting(candidate.config));
    DYNAMICCL_CHECK_OK(WriteTextFile(launch.runtime.rules, rules));
  }
  const bool decides = !launch.runtime.rules.empty() || !launch.runtime.policy.empty();
  launch.runtime.mode = decides ? "frozen" : "observe";
  DYNAMICCL_TRY(LaunchPlan plan, PlanLaunch(launch, WithValues(line_.program(), candidate.values)));
  if (BoundsChannels(candidate.config)) plan.environment["DYNAMICCL_LOG"] = "info";
  plan.output_path = File("job.log");
  plan.time_limit = StartLimit();
  return dynamiccl::Launch(plan);
}

Result<JobStart> TuneSession::Start(const Candidate& candidate, const std::string& times, WatchedRun& run) {
  DYNAMICCL_TRY(const TemporaryFolder folder, TemporaryFolder::Create("tune"));
  const int64_t begun_ns = RealtimeNanoseconds();
  const size_t earlier = BytesOf(File("job.log"));
  DYNAMICCL_TRY(const LaunchOutcome outcome, Launch(candidate, times, folder.File("")));
  JobStart start{.candidate = candidate.Name(),
                 .seconds = static_cast<double>(outcome.wall_ns) * kSecondsOfNs};
  interrupted_by_ = outcome.interrupted_by;
  if (interrupted_by_ != 0) return Interrupted(outcome);
  run = ReadWatched(folder.File(""), EndOf(outcome, begun_ns, StartLimit()));
  if (!outcome.ok() && !outcome.timed_out) {
    start.failure = "the job failed: " + dynamiccl::Describe(outcome);
  } else if (!run.step) {
    start.failure = run.why_no_step;
    start.other_steps = !outcome.timed_out;
    if (outcome.timed_out)
      start.failure += fmt::format(" within --start-limit ({:.0f} s)", given_.start_limit_s);
  } else if (&run != &base_ && outcome.timed_out) {
    start.failure = WhyStalled(run.when, base_.when, run.step->step_ns);
  }
  if (start.failure.empty() && &run != &base_) {
    start.failure = WhyNotComparable(candidate, *run.step, *base_.step);
    start.other_steps = !start.failure.empty();
  }
  if (start.failure.empty()) {
    start.step_ms = static_cast<double>(run.step->step_ns) * 1e-6;
    start.buckets = BucketsOf(*run.step);
    std::string output = BoundsChannels(candidate.config) ? ReadTextFile(File("job.log")).value_or("") : "";
    output.erase(0, std::min(earlier, output.size()));  // what earlier starts wrote
    Prove(candidate, line_.program(), run, output, start);
  }
  return start;
}

Result<JobStart> TuneSession::StartConfigs(const CandidateList& list, const std::string& name) {
  DYNAMICCL_TRY(const TemporaryFolder folder, TemporaryFolder::Create("tune"));
  const std::vector<std::string> settings = SettingsInTurn(list);
  const TurnsPlan plan{.settings = settings,
                       .turn_steps = kStepsOfTurn,
                       .trace = folder.File("turns.ctrace"),
                       .output_path = File("job.log"),
                       .time_limit = StartLimit()};
  const int64_t begun_ns = RealtimeNanoseconds();
  DYNAMICCL_TRY(const TurnsStart turns, StartInTurns(given_.launch, line_.program(), plan));
  const LaunchOutcome& outcome = turns.recorded.outcome;
  JobStart start{.candidate = name, .seconds = static_cast<double>(outcome.wall_ns) * kSecondsOfNs};
  interrupted_by_ = outcome.interrupted_by;
  if (interrupted_by_ != 0) return Interrupted(outcome);
  if (!outcome.ok() && !outcome.timed_out) {
    start.failure = "the job failed with NCCL's configs in turns: " + dynamiccl::Describe(outcome);
    return start;
  }
  if (outcome.timed_out) {
    const RunCalls when = CallsOfRun({turns.trace}, EndOf(outcome, begun_ns, StartLimit()));
    start.failure = WhyStalled(when, base_.when, base_.step->step_ns);
    if (!start.failure.empty()) start.failure = "NCCL's configs were not tried: " + start.failure;
  }
  if (start.failure.empty()) JudgeTurns(turns.calls, settings, start);
  return start;
}

Status TuneSession::TryConfigsInTurns(CandidateList& list) {
  CutToTurns(base_.turns, list);
  if (list.configs.empty()) {
    spdlog::warn("{}", list.left_out.back());
    return {};
  }
  const size_t tried = list.configs.size();
  TurnVerdicts verdicts;
  for (int number = 1; !list.configs.empty(); ++number) {
    DYNAMICCL_TRY(const JobStart start, FindOrStartConfigs(list, number));
    ++result_.starts;
    if (!start.failure.empty()) {
      spdlog::warn("{}", start.failure);
      list.left_out.push_back(start.failure);
      KeepConfigs(verdicts.faster, list);  // what an earlier start proved
      return {};
    }
    verdicts = VerdictsIn(start.seen);
    std::vector<std::string> kept = verdicts.faster;
    kept.insert(kept.end(), verdicts.open.begin(), verdicts.open.end());
    KeepConfigs(kept, list);
    if (verdicts.open.empty()) break;
    spdlog::info("once more in turns: {}", fmt::join(kept, ", "));
  }
  if (tried > list.configs.size())
    list.left_out.push_back(fmt::format("{} of NCCL's configs were not surely faster in turns within a start",
                                        tried - list.configs.size()));
  return {};
}

Result<JobStart> TuneSession::FindOrStartConfigs(const CandidateList& list, int number) {
  const std::string name = ConfigsInTurns(number);
  std::optional<JobStart> start = journal_->Next(0, name);
  if (start) {
    earlier_s_ += start->seconds;
    return std::move(*start);
  }
  DYNAMICCL_TRY(start, StartConfigs(list, name));
  // The journal says whether another such start follows, because a continued tune may have a larger budget.
  if (number == kMostStartsInTurns || !FitsBudget(kStartsOfFinal + 1))
    start->seen = TextOf({VerdictsIn(start->seen).faster, {}});
  DYNAMICCL_CHECK_OK(journal_->Add(*start));
  return std::move(*start);
}

Status TuneSession::Observe() {
  spdlog::info("watching the job as it is");
  DYNAMICCL_TRY(const JobStart start, Start({}, kAllTimes, base_));
  if (!start.failure.empty())
    return WithHint(MakeError(ErrorKind::kPeerFailed, "{}", start.failure),
                    OutputHint(File("job.log")) + WhatAStepNeeds(start, base_, given_.start_limit_s));
  starts_s_ = start.seconds;
  ++result_.starts;
  result_.framework = FrameworkOf(base_.reports);
  result_.watched_ms = start.step_ms;
  result_.ranks = base_.step->ranks;
  result_.calls = CallsOfStep(*base_.step);
  RecogniseByCommand();
  if (const std::string note = CallsNotSimulated(*base_.step); !note.empty()) result_.notes.push_back(note);
  spdlog::info("{} on {} ranks, {:.2f} ms a step: {}", Name(result_.framework), result_.ranks, start.step_ms,
               result_.calls);
  for (const std::string& note : result_.notes) spdlog::warn("{}", note);
  by_buckets_[start.buckets] = "default";
  return {};
}

void TuneSession::RecogniseByCommand() {
  const auto options = TrainerOptionsIn(line_.program());
  result_.megatron = StartsMegatron(line_.program());
  if (!options && result_.framework == Framework::kOther && result_.megatron) {
    result_.framework = Framework::kMegatron;
    return;
  }
  if (!options && result_.framework == Framework::kOther)
    result_.notes.emplace_back(
        "no DDP, no FSDP2 and no DeepSpeed was seen (another framework, or Python with -S, -I or -E): only "
        "NCCL's configs "
        "are tried");
  if (!options) return;
  auto job = TrainerJobOf(*options, result_.ranks);
  if (!job) {
    result_.notes.push_back("the trainer's own settings are not tried: " + job.error().message);
    return;
  }
  result_.framework = Framework::kTrainer;
  base_.trainer = std::move(*job);
}

Result<CandidateList> TuneSession::ListOf() {
  CandidateList list = CandidatesFor(base_);
  if (result_.framework == Framework::kMegatron) AddMegatronCandidates(line_.program(), result_.ranks, list);
  list.left_out.insert(list.left_out.begin(), result_.notes.begin(), result_.notes.end());
  if (given_.only.empty()) return list;
  CandidateList only{.left_out = list.left_out};
  for (const std::string& text : given_.only) {
    DYNAMICCL_TRY(Candidate candidate, CandidateNamed(text));
    (candidate.values.empty() ? only.configs : only.framework).push_back(std::move(candidate));
  }
  return only;
}

std::vector<Forecast> TuneSession::Predict(CandidateList& list) {
  result_.job = DescribeJob(base_, std::nullopt);
  if (list.framework.empty()) return {};
  if (result_.framework == Framework::kMegatron) {
    list.left_out.emplace_back("the effect of Megatron-LM's own settings is not predicted");
    return {};
  }
  const auto prediction = ChangePrediction::From(base_);
  if (!prediction) {
    list.left_out.push_back("no setting's worth is predicted: " + prediction.error().message);
    return {};
  }
  result_.job = DescribeJob(base_, prediction->ExposedShare());
  std::vector<Forecast> forecasts = ForecastsOf(*prediction, list.framework);
  // A user who names candidates wants all of them tried, so no prediction leaves one out.
  if (!given_.only.empty())
    for (Forecast& forecast : forecasts) forecast.not_tried.clear();
  return forecasts;
}

Result<SearchShape> TuneSession::Shape(CandidateList& list) {
  const std::optional<SearchShape> found = journal_->FoundShape();
  const std::vector<Forecast> predicted = Predict(list);
  const std::vector<Forecast> forecasts = found ? found->forecasts : predicted;
  Apply(forecasts, list);
  SearchShape shape = found ? *found : ShapeFor(list);
  shape.forecasts = forecasts;
  journal_->SetShape(shape);
  for (const Forecast& forecast : forecasts)
    spdlog::info("{}: {}", forecast.setting,
                 forecast.ratio > 0 ? fmt::format("{:.3f} of a step predicted", forecast.ratio)
                                    : "its worth cannot be predicted");
  if (!given_.only.empty()) return shape;
  DYNAMICCL_CHECK_OK(TryConfigsInTurns(list));
  KeepLikeliest(shape.most, list);
  return shape;
}

SearchShape TuneSession::ShapeFor(const CandidateList& list) const {
  const auto affordable = static_cast<size_t>(std::max(0.0, given_.budget_s - Elapsed()) / starts_s_);
  // Of five starts of the job, four run a candidate. The fifth runs the unchanged job, once for every four
  // candidates.
  const size_t for_singles = (affordable - std::min(affordable, kStartsOfFinal + kStartsOfHalving)) * 4 / 5;
  SearchShape shape{.most = std::max(for_singles, kFewestSingles)};
  const size_t configs = given_.only.empty() ? std::min<size_t>(list.configs.size(), 2) : list.configs.size();
  const size_t singles = std::min(shape.most, list.framework.size() + configs);
  shape.level_rounds = for_singles >= 2 * singles ? 2 : 1;
  return shape;
}

double TuneSession::ElapsedAfter(size_t starts) const {
  const double each = starts_s_ / static_cast<double>(std::max<size_t>(starts_in_turns_, 1));
  return Elapsed() + each * static_cast<double>(starts);
}

Status TuneSession::RunTurns(TuneSearch& search) {
  for (;;) {
    const std::vector<size_t> turn = search.NextTurn();
    if (turn.empty()) return {};
    if (search.turn() > 1 && !FitsBudget(turn.size())) {
      result_.needed_s = ElapsedAfter(turn.size());
      return {};
    }
    spdlog::info("turn {}: {} starts of the job, {:.0f} s of {:.0f} s are over", search.turn(), turn.size(),
                 Elapsed(), given_.budget_s);
    DYNAMICCL_CHECK_OK(RunTurn(search, turn));
  }
}

Status TuneSession::RunTurn(TuneSearch& search, const std::vector<size_t>& turn) {
  for (const size_t number : turn) {
    if (number != 0 && !search.tried()[number].in) continue;
    const Candidate candidate = search.tried()[number].candidate;
    DYNAMICCL_TRY(const JobStart start,
                  number == 0 ? StartUnchanged(search.turn()) : FindOrStart(candidate, search.turn()));
    Weigh(search, number, start);
  }
  return {};
}

Result<JobStart> TuneSession::StartUnchanged(int turn) {
  for (int tries = 1;; ++tries) {
    DYNAMICCL_TRY(JobStart start, FindOrStart({}, turn));
    if (start.failure.empty()) return start;
    if (!start.other_steps || tries == kMostTries || !FitsBudget(1))
      return tl::unexpected(UnchangedFailed(start, turn, tries));
    result_.notes.push_back(fmt::format("a start of the job as it is was left out: {}", start.failure));
    spdlog::warn("{}; starting it again", result_.notes.back());
  }
}

Error TuneSession::UnchangedFailed(const JobStart& start, int turn, int tries) const {
  std::string why = start.failure;
  std::string next = "the same command goes on with another start of it";
  if (start.other_steps && tries == kMostTries) {
    why += fmt::format("; so it was in {} starts in a row", tries);
  } else if (start.other_steps) {
    why += fmt::format("; another start does not fit into --budget {:.0f}s", given_.budget_s);
    next += fmt::format(" with --budget {:.0f}s or more", std::ceil(ElapsedAfter(1)));
  }
  return Error{.kind = ErrorKind::kPeerFailed,
               .message = fmt::format("the job as it is failed in turn {}: {}", turn, why),
               .hint = next + "; " + OutputHint(File("job.log"))};
}

Result<JobStart> TuneSession::FindOrStart(const Candidate& candidate, int turn) {
  std::optional<JobStart> earlier = journal_->Next(turn, candidate.Name());
  if (earlier) {
    earlier_s_ += earlier->seconds;
  } else {
    WatchedRun run;
    DYNAMICCL_TRY(earlier, Start(candidate, kNoTimes, run));
    earlier->turn = turn;
    // A failure of the unchanged job ends the tune. The same command then starts the job again.
    if (!candidate.IsUnchanged() || earlier->failure.empty()) DYNAMICCL_CHECK_OK(journal_->Add(*earlier));
    spdlog::info("{}: {}", earlier->candidate,
                 earlier->failure.empty() ? fmt::format("{:.2f} ms", earlier->step_ms) : earlier->failure);
  }
  starts_s_ = starts_in_turns_ == 0 ? earlier->seconds : starts_s_ + earlier->seconds;
  ++starts_in_turns_;
  ++result_.starts;
  return std::move(*earlier);
}

void TuneSession::Weigh(TuneSearch& search, size_t candidate, const JobStart& start) {
  if (!start.failure.empty()) {
    search.Fail(candidate, start.failure);
    return;
  }
  const Candidate& what = search.tried()[candidate].candidate;
  if (candidate != 0 && what.config.empty() && what.values.contains("ddp.bucket_cap_mb")) {
    const auto [first, is_new] = by_buckets_.try_emplace(start.buckets, start.candidate);
    if (!is_new && first->second != start.candidate) {
      search.GiveUp(candidate, "the same AllReduces as " + first->second);
      return;
    }
  }
  search.Record(candidate, start.step_ms);
  seen_[start.candidate] = start.seen;
}

}  // namespace dynamiccl
