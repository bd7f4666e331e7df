// SPDX-License-Identifier: Apache-2.0
// Divides the time budget of a sweep into slices, each of which is one launch. The journal carries the
// results of a slice to the next one.
#include "tools/commands/sweep_visits.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "tools/bench/sweep_slices.h"
#include "tools/launch/machine_description.h"
#include "traces/format/sweep_journal.h"

namespace dynamiccl {
namespace {

// Seconds of the shortest slice (one launch of the ranks). Starting and connecting the ranks takes about 1 s.
constexpr double kShortestSlice = 5;

using MonotonicClock = std::chrono::steady_clock;

// Creates the journal, or checks that an existing one belongs to this sweep and drops a torn last record.
Status OpenJournal(const VisitedSweep& sweep) {
  if (!std::filesystem::exists(sweep.journal)) {
    DYNAMICCL_TRY(const auto writer, SweepJournalWriter::Create(sweep.journal, sweep.plan));
    return {};
  }
  DYNAMICCL_TRY(const SweepJournal journal, ReadSweepJournal(sweep.journal));
  if (journal.plan != sweep.plan) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "{} is of another sweep: '{}', not '{}'",
                              sweep.journal, journal.plan, sweep.plan),
                    "give the same options to go on, or remove it to begin anew");
  }
  spdlog::info("goes on after {:.0f} s and {} configs of {}{}", journal.seconds, journal.measured.rows.size(),
               sweep.journal, journal.torn ? ", whose last record was torn" : "");
  DYNAMICCL_TRY(const auto writer, SweepJournalWriter::Continue(sweep.journal, journal));
  return {};
}

// Returns the progress of each topology, read from the journal.
std::vector<SweptTopology> StatesOf(const VisitedSweep& sweep, const SweepJournal& journal) {
  std::vector<SweptTopology> states;
  for (const std::string& topology : sweep.topologies) {
    const auto promise = journal.promises.find(topology);
    const auto complete = journal.complete.find(topology);
    states.push_back({promise != journal.promises.end(),
                      complete != journal.complete.end() && complete->second,
                      promise == journal.promises.end() ? 0 : promise->second});
  }
  return states;
}

}  // namespace

Result<MeasurementFile> VisitTopologies(const VisitedSweep& sweep) {
  DYNAMICCL_CHECK_OK(OpenJournal(sweep));
  while (true) {
    DYNAMICCL_TRY(SweepJournal journal, ReadSweepJournal(sweep.journal));
    const double left_s = sweep.budget_s - journal.seconds;
    const auto slice = NextSlice(StatesOf(sweep, journal), sweep.choice.order, left_s, kShortestSlice);
    if (!slice) return std::move(journal.measured);
    DYNAMICCL_CHECK_OK(sweep.launch(slice->topology, slice->seconds, left_s - slice->seconds));
  }
}

Status VisitAsRank(BenchSession& session, const SweepOptions& options, const ChoiceOptions& choice,
                   const std::string& path, SweepProgress& progress) {
  const auto begin = MonotonicClock::now();
  std::vector<Measurement> known;
  std::optional<SweepJournalWriter> writer;
  if (session.place().rank == 0) {
    DYNAMICCL_TRY(const SweepJournal journal, ReadSweepJournal(path));
    std::copy_if(journal.measured.rows.begin(), journal.measured.rows.end(), std::back_inserter(known),
                 [&](const Measurement& row) { return row.topology == options.topology; });
    DYNAMICCL_TRY(auto opened, SweepJournalWriter::Continue(path, journal));
    writer.emplace(std::move(opened));
  }
  int visits = 0;
  double spent_s = 0;
  const SweepObserver observer{[&](const MeasurementContext& context) -> Status {
                                 if (!writer) return {};
                                 return writer->AddContext(session.library().Description(),
                                                           MachineDescription(), context);
                               },
                               [&](const Measurement& row, double seconds) -> Status {
                                 if (!writer) return {};
                                 spent_s += seconds;
                                 progress.ShowVisits(++visits, options.budget_s - spent_s);
                                 return writer->AddVisit(row, seconds);
                               }};
  DYNAMICCL_TRY(const ChosenSweepResult result, RunChosenSweep(session, options, choice, known, observer));
  if (!writer) return {};
  progress.Clear();
  const double seconds = std::chrono::duration<double>(MonotonicClock::now() - begin).count();
  spdlog::info("{}: {:.1f} s, {}", options.topology, seconds,
               result.complete ? "every config has all repeats"
                               : fmt::format("a second more promises {:.2g} octaves", result.promise));
  return writer->EndSlice(options.topology, seconds, result.promise, result.complete);
}

}  // namespace dynamiccl
