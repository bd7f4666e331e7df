// SPDX-License-Identifier: Apache-2.0
// Writes the sentences about questions that the files leave open, and the next command.
#include <fmt/format.h>

#include <algorithm>

#include "src/base/counted.h"
#include "tools/advise/recorded_step.h"
#include "tools/hang/hang_checks.h"
#include "tools/why/parts.h"

namespace dynamiccl {
namespace {

constexpr const char* kRecord = "dynamiccl record -o job.ctrace -- LAUNCH";

// Counts the calls for which the files do not say which algorithm NCCL used. Some importers also count calls
// that have no algorithm, such as Sends.
uint64_t CallsWithoutAlgorithm(const WhyInput& input) {
  uint64_t calls = 0;
  for (const WhyFile& file : input.files)
    for (const UnfilledField& field : file.unfilled) calls += field.field == "algorithm" ? field.count : 0;
  return calls;
}

// True if no time was measured between ranks, so that no system can be fitted.
bool TimesOfOneRankOnly(const WhyInput& input) {
  return std::ranges::all_of(input.measurements, [](const MeasurementFile& file) {
    return std::ranges::all_of(
        file.contexts, [](const MeasurementContext& context) { return context.model.fabric.n_ranks < 2; });
  });
}

// Returns the number of calls whose algorithm is not known. The answer of a log may hold for several calls,
// while the trace has this answer only at the first of them. So the calls that were counted may be too many.
uint64_t WithoutAlgorithm(const WhyInput& input, const CallTally& tally) {
  return std::min(tally.without_algorithm, CallsWithoutAlgorithm(input));
}

// Says which sends and receives have no times. A recorder times none of them, and an imported file only some.
std::string UntimedBetweenTwo(const CallTally& tally) {
  if (tally.untimed_between_two.empty()) return {};
  const std::string share =
      tally.bytes > 0 ? fmt::format(" ({:.0f} % of the bytes)", 100 * tally.untimed_bytes / tally.bytes) : "";
  return fmt::format("The times of {}{}, which no time above contains: a profiler trace of PyTorch.",
                     CallsText(tally.untimed_between_two), share);
}

// Says for how many of `chosen` calls the algorithm is not known. A log that has some choices was written
// with the settings for all of them, so another such log would not have more.
std::string UnknownChoices(uint64_t unknown, uint64_t chosen, bool from_log) {
  return fmt::format("Which algorithm and protocol NCCL used for {} of {} calls{}: {}.", unknown, chosen,
                     from_log ? " of a rank" : "",
                     from_log && unknown < chosen
                         ? "NCCL logged no choice for these"
                         : "a log with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL,TUNING of every rank");
}

// Says which records are lost, and of which files, and how many newer ones replaced.
void AddMissing(const WhyInput& input, const MissingRecords& missing, std::vector<std::string>& lines) {
  for (const std::string& damage : input.trace->damage)
    lines.push_back("Part of a file is lost: " + damage + ".");
  if (missing.lost > 0 && input.imported)
    lines.push_back(
        fmt::format("{} lost: dropped by the program that wrote the file, or cut off in the file.",
                    Counted(missing.lost, "call")));
  else if (missing.lost > 0)
    lines.push_back(fmt::format("{} lost: damaged, not complete, or without a place in the buffer.",
                                Counted(missing.lost, "record")));
  if (missing.replaced > 0)
    lines.push_back(fmt::format("{} replaced by newer ones ({}).", Counted(missing.replaced, "record"),
                                input.imported
                                    ? "TORCH_NCCL_TRACE_BUFFER_SIZE sets how many the Flight Recorder keeps"
                                    : "DYNAMICCL_TRACE_RECORDS sets how many a thread keeps"));
}

// Says of which ranks the sends and receives were not compared, and which files would have them all.
std::string UnmatchedText(const WhyInput& input, const std::vector<int32_t>& ranks) {
  if (ranks.empty()) return {};
  return fmt::format(
      "Whether the sends and receives of {} match: the n-th send belongs to the n-th receive, and n is not "
      "known where records are missing. {} set above the number of the job's calls keeps them all.",
      RankList(ranks), input.imported ? "TORCH_NCCL_TRACE_BUFFER_SIZE" : "DYNAMICCL_TRACE_RECORDS");
}

std::string Paths(const WhyInput& input) {
  std::vector<std::string> paths;
  for (const WhyFile& file : input.files) paths.push_back(file.path);
  return fmt::format("{}", fmt::join(paths, " "));
}

}  // namespace

std::vector<std::string> MissingLines(const WhyInput& input, const WhyFacts& facts, const Trouble& trouble) {
  std::vector<std::string> lines;
  if (IsProfileAlone(input) && Lacks(input, "calls"))
    return {
        "Which collectives these are, of what size and among how many ranks: a profile with the host's "
        "activities too (torch.profiler with activities of the CPU and of CUDA)."};
  if (IsProfileAlone(input))
    return {
        "Communication between ranks: a profile of several steps, taken in a process that calls "
        "torch.distributed."};
  if (!input.trace && input.measurements.empty())
    return {
        "What the job calls: no call is logged. NCCL logs calls with NCCL_DEBUG=INFO "
        "NCCL_DEBUG_SUBSYS=INIT,ENV,COLL,TUNING."};
  if (!input.trace)
    return {
        "What a training step gains: a sweep times calls alone. `dynamiccl ab` and `dynamiccl pilot` compare "
        "steps."};
  AddMissing(input, facts.summary.missing, lines);
  if (const std::string unmatched = UnmatchedText(input, trouble.unmatched); !unmatched.empty())
    lines.push_back(unmatched);
  if (const std::string untimed = UntimedBetweenTwo(facts.tally); !untimed.empty()) lines.push_back(untimed);
  if (facts.times.kinds.empty() && facts.tally.collectives > 0)
    lines.push_back(fmt::format(
        "How long collectives take: a profiler trace of PyTorch, or `DYNAMICCL_TIMES=all {}`.", kRecord));
  const std::string backend = OtherBackend(input);
  const uint64_t unknown = backend.empty() ? WithoutAlgorithm(input, facts.tally) : 0;
  if (!backend.empty() && backend != "dynamiccl")
    lines.push_back(
        fmt::format("What NCCL would do: {} is no NCCL. On CPUs the same script runs over the backend "
                    "`dynamiccl`, which makes "
                    "calls of NCCL (docs/torch_backend.md).",
                    backend));
  if (unknown > 0) lines.push_back(UnknownChoices(unknown, facts.tally.chosen, input.calls_are_logged));
  if (static_cast<int>(input.trace->sections.size()) < facts.ranks)
    lines.emplace_back("For whom ranks wait: the same files of the other ranks, given together.");
  if (input.devices.empty() && OtherBackend(input).empty() && !RanOnCpus(input))
    lines.emplace_back(
        "How much communication hides behind computation: a profiler trace of one rank (torch.profiler, with "
        "CUDA activities).");
  if (OtherBackend(input).empty() || OtherBackend(input) == "dynamiccl")
    lines.emplace_back(
        "Whether another algorithm would make steps shorter: `dynamiccl pilot -- LAUNCH` tries them in the "
        "job.");
  return lines;
}

std::vector<std::string> NextLines(const WhyInput& input, bool trouble, bool changes) {
  const std::string paths = Paths(input);
  if (IsProfileAlone(input) && Lacks(input, "calls"))
    return {"dynamiccl why, with a profile of the CPU's and CUDA's activities"};
  if (IsProfileAlone(input))
    return {
        "the profile, in https://ui.perfetto.dev: it shows what runs when; there is no collective to choose "
        "for"};
  if (!input.trace && input.measurements.empty()) return {fmt::format("dynamiccl receipt {}", paths)};
  if (!input.trace && input.imported && TimesOfOneRankOnly(input))
    return {"the same measurement on two ranks or more: one rank alone moves no data"};
  if (!input.trace && input.imported) return {fmt::format("dynamiccl calibrate {} -o system.toml", paths)};
  if (!input.trace) return {fmt::format("dynamiccl report {} -o report.html", paths)};
  if (trouble) return {fmt::format("dynamiccl hang {}", paths)};
  const auto idles = [](const DeviceTime& device) { return device.idle_ns > device.total_ns() / 2; };
  if (std::ranges::any_of(input.devices, idles))
    return {"the profile, in https://ui.perfetto.dev: what the host does while the device has nothing to do"};
  if (changes && input.imported)
    return {fmt::format("dynamiccl trace import {} -o job.ctrace && dynamiccl advise job.ctrace", paths)};
  if (changes) return {fmt::format("dynamiccl advise {}", paths)};
  if (!OtherBackend(input).empty())
    return {fmt::format("DYNAMICCL_TIMES=all {}", kRecord),
            "LAUNCH stands for the command that starts your job over the backend `dynamiccl`, such as "
            "torchrun with "
            "all its words."};
  return {"dynamiccl pilot -- LAUNCH",
          "LAUNCH stands for the command that starts your job, such as torchrun with all its words."};
}

}  // namespace dynamiccl
