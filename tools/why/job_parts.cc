// SPDX-License-Identifier: Apache-2.0
// Writes the sentences about the job itself and about its time.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "src/base/counted.h"
#include "src/base/statistics.h"
#include "src/collective/size_class.h"
#include "tools/advise/recognised_job.h"
#include "tools/report/trace_summary.h"
#include "tools/why/parts.h"

namespace dynamiccl {
namespace {

// With fewer steps than this, the spread (10th to 90th percentile) of the step times is not shown.
constexpr size_t kFewSteps = 10;
constexpr size_t kMaxKinds = 3;
constexpr size_t kMaxBandwidths = 6;
// A rank is named when it is last more often than its even share of the calls, by at least this factor.
constexpr double kOftenLast = 1.5;
constexpr double kLeastWait = 0.02;
// The bandwidth is shown only for calls of at least this many bytes. The time of a smaller call is mostly
// latency.
constexpr uint64_t kLeastBandwidthBytes = 64 << 10;
// The bandwidth is shown only for at least this many calls. A profiler that reads a kernel's events late
// makes a single call look much shorter than it was.
constexpr size_t kLeastBandwidthCalls = 3;
// The longest call of a kind is shown only if the mean time of the kind's calls is more than this many times
// their median time.
constexpr double kFewLongCalls = 3;

// "22 AllReduce (81.28M), 2 Broadcast (1M)"
std::string CallsText(const TraceSummary& summary) {
  std::vector<std::string> texts;
  for (const auto& [name, count] : summary.collectives)
    texts.push_back(fmt::format("{} {} ({})", count.calls, name,
                                count.bytes > 0 ? FormatBytes(count.bytes) : "unknown size"));
  return fmt::format("{}", fmt::join(texts, ", "));
}

// Returns "8 ranks", or "At least 8 ranks" if the files may not name all.
std::string RankCount(const WhyInput& input, int ranks) {
  return (MayHaveMoreRanks(input) ? "At least " : "") + Counted(ranks, "rank");
}

std::string RanksText(const WhyInput& input, int ranks) {
  const size_t files = input.trace->sections.size();
  const std::string& library = input.trace->sections.front().library;
  std::string text = ranks == 1 && HidesRanks(input) ? "The file does not say how many ranks the job has"
                                                     : RankCount(input, ranks);
  if (static_cast<int>(files) < ranks)
    text += files == 1 && input.trace->sections.front().rank >= 0
                ? fmt::format(", of which rank {} is here", input.trace->sections.front().rank)
                : fmt::format(", of which {} {} here", files, files == 1 ? "is" : "are");
  return text + (library.empty() ? "" : "; " + library);
}

// Returns "Framework: PyTorch DDP (DistributedDataParallel.forward)." with the names in the files that show
// it; empty if no file shows one.
std::string FrameworkText(const WhyInput& input) {
  std::map<std::string, std::string> seen_of;
  for (const WhyFile& file : input.files)
    for (const FrameworkMark& mark : file.frameworks) seen_of.emplace(mark.framework, mark.seen);
  std::vector<std::string> texts;
  for (const auto& [framework, seen] : seen_of) texts.push_back(fmt::format("{} ({})", framework, seen));
  return texts.empty() ? "" : fmt::format("Framework: {}.", fmt::join(texts, ", "));
}

std::string StepText(const RecordedStep& step) {
  std::string text = fmt::format("A step is {}; {} with exactly these calls ({}).",
                                 Counted(step.operations.size(), "collective"), Counted(step.steps, "step"),
                                 step.marked ? "the program marked its steps" : "found by repetition");
  if (!step.between_two.empty())
    text += fmt::format(" Not counted in it: {}, which consist of sends and receives.",
                        CallsText(step.between_two));
  return text;
}

void AddDevice(const DeviceTime& device, std::vector<std::string>& lines) {
  const auto total = static_cast<double>(device.total_ns());
  if (total <= 0) return;
  const auto percent = [&](int64_t ns) { return 100 * static_cast<double>(ns) / total; };
  lines.push_back(fmt::format(
      "The device's {:.0f} ms: {:.1f} % computing, {:.1f} % communicating while nothing computes, {:.1f} % "
      "idle.",
      total * 1e-6, percent(device.computing_ns), percent(device.exposed_ns), percent(device.idle_ns)));
  const auto communicating = static_cast<double>(device.hidden_ns + device.exposed_ns);
  if (device.idle_ns > device.computing_ns && device.idle_ns > device.exposed_ns) {
    std::string text = "Mostly the device has nothing to do: it waits for the host, or for input.";
    if (communicating > 0)
      text += fmt::format(" Collectives that took no time would save {:.1f} %.", percent(device.exposed_ns));
    lines.push_back(text);
  }
  if (communicating > 0)
    lines.push_back(fmt::format("{:.0f} % of the communication hides behind computation.",
                                100 * static_cast<double>(device.hidden_ns) / communicating));
}

// Names the bandwidth that goes with BusBandwidthFactor. SendRecv may be an all-to-all in files that version
// 0.1.0 imported, and then has another factor. So its bandwidth is called algorithm bandwidth.
std::string_view BandwidthName(Collective collective) {
  return collective == Collective::kSendRecv ? "algorithm bandwidth" : "bus bandwidth";
}

// Returns "4 ranks". Where files do not state the sizes of groups, such a group stands in the trace with 1
// rank.
std::string RanksOfKind(const WhyInput& input, int ranks) {
  if (ranks == 1 && HidesRanks(input)) return "an unknown number of ranks";
  return (MayHaveMoreRanks(input) ? "at least " : "") + Counted(ranks, "rank");
}

std::string KindText(const WhyInput& input, const CallKind& kind, double all_ms) {
  std::string text = fmt::format(
      "{} of {} among {}: {}, median {:.0f} us, {:.0f} % of the time in collectives", Name(kind.collective),
      kind.bytes > 0 ? FormatBytes(kind.bytes) : "unknown size", RanksOfKind(input, kind.n_ranks),
      Counted(kind.calls, "call"), kind.median_us, 100 * kind.total_ms / all_ms);
  if (kind.total_ms * 1e3 > kFewLongCalls * kind.median_us * static_cast<double>(kind.calls))
    text += fmt::format(", the longest {:.0f} us", kind.longest_us);
  // A group of one rank sends nothing, and of Gather and Scatter the total is not known.
  const bool sends =
      kind.n_ranks > 1 && kind.collective != Collective::kGather && kind.collective != Collective::kScatter;
  if (sends && !MayHaveMoreRanks(input) && kind.bytes >= kLeastBandwidthBytes &&
      kind.calls >= kLeastBandwidthCalls)
    text += fmt::format(", {:.1f} GB/s {}", kind.BusBandwidth(), BandwidthName(kind.collective));
  return text;
}

std::string SpanText(double ms) {
  return ms < 10 ? fmt::format("{:.0f} us", ms * 1e3) : fmt::format("{:.0f} ms", ms);
}

void AddWaits(const RankWaits& waits, size_t ranks, std::vector<std::string>& lines) {
  if (waits.waited_share < kLeastWait) {
    lines.push_back(
        fmt::format("Ranks hardly wait for each other: {:.1f} % of the time.", 100 * waits.waited_share));
    return;
  }
  std::string text =
      fmt::format("Inside collectives, ranks wait for the last one to come: {:.0f} % of the time on average",
                  100 * waits.waited_share);
  if (waits.late_share * static_cast<double>(ranks) > kOftenLast)
    text += fmt::format("; rank {} comes last in {:.0f} % of {} calls", waits.late_rank,
                        100 * waits.late_share, waits.calls);
  lines.push_back(text + ".");
}

// Says how high the bandwidth of the library's own choices gets for one collective, and from which size
// on it reaches half of that.
std::string BandwidthText(const std::string& topology, Collective collective, int n_ranks,
                          const std::map<uint64_t, double>& gb_s_by_bytes) {
  const auto best = std::ranges::max_element(gb_s_by_bytes, {}, [](const auto& each) { return each.second; });
  const auto half =
      std::ranges::find_if(gb_s_by_bytes, [&](const auto& each) { return each.second >= best->second / 2; });
  return fmt::format("{} among {} on {}: up to {:.1f} GB/s {} (at {}); half of it from {} on",
                     Name(collective), Counted(n_ranks, "rank"), topology, best->second,
                     BandwidthName(collective), FormatBytes(best->first), FormatBytes(half->first));
}

void AddBandwidths(const MeasurementFile& sweep, std::vector<std::string>& lines) {
  size_t shown = 0;
  std::map<std::string_view, std::vector<const Measurement*>> rows_of;
  for (const Measurement& row : sweep.rows) {
    if (row.is_default && !row.microseconds.empty() && row.bytes > 0) rows_of[row.topology].push_back(&row);
  }
  for (const MeasurementContext& context : sweep.contexts) {
    const int n_ranks = context.model.fabric.n_ranks;
    std::map<Collective, std::map<uint64_t, double>> bandwidths;
    for (const Measurement* const row : rows_of[context.topology]) {
      const double us = Median(row->microseconds);
      if (us > 0)
        bandwidths[row->collective][row->bytes] =
            static_cast<double>(row->bytes) * BusBandwidthFactor(row->collective, n_ranks) / (us * 1e3);
    }
    for (const auto& [collective, of_bytes] : bandwidths)
      if (n_ranks > 1 && shown++ < kMaxBandwidths)
        lines.push_back(BandwidthText(context.topology, collective, n_ranks, of_bytes));
  }
  if (shown > kMaxBandwidths)
    lines.push_back(fmt::format("{} more; `dynamiccl report` shows all.", shown - kMaxBandwidths));
}

// Says how many calls were longer than a trace can say; empty where none was.
std::string CutTimesText(size_t cut) {
  if (cut == 0) return "";
  return fmt::format(
      "{} took 4.29 s or more; a trace keeps 4.29 s of each, so the times and shares above are too low.",
      Counted(cut, "call"));
}

}  // namespace

std::vector<std::string> JobLines(const WhyInput& input, const WhyFacts& facts) {
  std::vector<std::string> lines;
  for (const MeasurementFile& sweep : input.measurements)
    lines.push_back(fmt::format("Times of single collectives, no job: {} on {}.",
                                sweep.library.empty() ? "a library that is not named" : sweep.library,
                                sweep.machine.empty() ? "a machine that is not named" : sweep.machine));
  if (IsProfileAlone(input))
    lines.emplace_back(Lacks(input, "calls")
                           ? "A profile with kernels of NCCL, but without the program's calls that launched "
                             "them: of the device's activities alone."
                           : "A profile in which no collective was called: of a job of one process, or of a "
                             "time without a step.");
  if (const std::string framework = FrameworkText(input); !framework.empty()) lines.push_back(framework);
  if (!input.trace || input.trace->sections.empty()) return lines;
  lines.push_back(RanksText(input, facts.ranks) + ".");
  if (const std::string backend = OtherBackend(input); !backend.empty())
    lines.push_back(
        fmt::format("Its calls are those of PyTorch's backend {}, with times of the host: from the issue of "
                    "a call to its end.",
                    backend));
  if (!facts.step) {
    lines.push_back("No step was seen to repeat: " + CallsText(facts.summary) + " on the first rank.");
    if (facts.paced > 0)
      lines.push_back(
          fmt::format("Its last {} calls are equal and come at one pace: steps of one bucket of gradients "
                      "look like that, and "
                      "so do equal layers. `dynamiccl advise` takes them for the former.",
                      facts.paced));
    return lines;
  }
  if (const Result<RecognisedJob> job = RecogniseJob(*facts.step))
    lines.push_back(
        fmt::format("{} {}.", facts.step->labelled ? "It is" : "By its calls it is like", job->what));
  else
    lines.push_back("Its calls do not tell which kind of training it is: " + CallsText(facts.summary) +
                    " on the first rank.");
  lines.push_back(StepText(*facts.step));
  if (facts.recognised != ZeroStage::kUnknown)
    lines.push_back(fmt::format("The shipped policy's LSTM takes {:.0f} % of its calls for ZeRO stage {}.",
                                100 * facts.recognised_share, Name(facts.recognised)));
  return lines;
}

std::vector<std::string> TimeLines(const WhyInput& input, const WhyFacts& facts) {
  std::vector<std::string> lines;
  if (facts.step && facts.step->step_ns > 0 && facts.step->steps < kFewSteps)
    lines.push_back(
        fmt::format("A step takes {:.2f} ms ({}).", static_cast<double>(facts.step->step_ns) * 1e-6,
                    facts.step->timed_steps == 1 ? "from one step to the next"
                                                 : fmt::format("median of {}", facts.step->timed_steps)));
  if (facts.step && facts.step->step_ns > 0 && facts.step->steps >= kFewSteps)
    lines.push_back(
        fmt::format("A step takes {:.2f} ms (median; the middle 8 of 10 steps span {:.0f} % of it).",
                    static_cast<double>(facts.step->step_ns) * 1e-6, 100 * facts.step->spread));
  for (const DeviceTime& device : input.devices) AddDevice(device, lines);
  const TimeAccount& times = facts.times;
  if (input.devices.empty() && times.busy_share)
    lines.push_back(
        fmt::format("A collective runs in {:.0f} % of the {} from the first collective to the last.",
                    100 * *times.busy_share, SpanText(times.span_ms)));
  for (const MeasurementFile& sweep : input.measurements) AddBandwidths(sweep, lines);
  double all_ms = 0;
  for (const CallKind& kind : times.kinds) all_ms += kind.total_ms;
  if (!times.kinds.empty())
    lines.emplace_back(
        "Of the time in collectives most went to these; a rank's wait for the others is in it:");
  for (size_t i = 0; i < std::min(kMaxKinds, times.kinds.size()); ++i)
    lines.push_back(KindText(input, times.kinds[i], all_ms));
  const std::string cut = times.kinds.empty() ? "" : CutTimesText(facts.tally.cut_times);
  if (!cut.empty()) lines.push_back(cut);
  if (times.waits) AddWaits(*times.waits, input.trace->sections.size(), lines);
  return lines;
}

}  // namespace dynamiccl
