// SPDX-License-Identifier: Apache-2.0
// Writes the sentences about questions that the files leave open, and the next command.
#include <fmt/format.h>

#include <algorithm>

#include "tools/advise/recorded_step.h"
#include "tools/why/parts.h"
#include "traces/format/trace_calls.h"

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

// The calls for which NCCL chooses an algorithm: collectives of at least two ranks.
struct ChosenCalls {
  uint64_t all = 0;
  uint64_t without_algorithm = 0;  // the files do not say which one NCCL chose
};

ChosenCalls CountChosen(const WhyInput& input, const std::vector<SectionCalls>& sections) {
  ChosenCalls counted;
  for (const SectionCalls& calls : sections) {
    for (const TraceCall& call : calls.calls) {
      const bool alone = calls.communicators.at(call.communicator).n_ranks < 2 && !HidesRanks(input);
      if (alone || static_cast<int>(call.issued.call.collective) >= kTunableCollectives) continue;
      ++counted.all;
      const bool told = call.decision && call.decision->config.algorithm != Algorithm::kUndefined;
      counted.without_algorithm += told ? 0 : 1;
    }
  }
  // The answer of a log may hold for several calls, while the trace has this answer only at the first of
  // them. So the calls counted above may be too many.
  counted.without_algorithm = std::min(counted.without_algorithm, CallsWithoutAlgorithm(input));
  return counted;
}

// Says which sends and receives have no times. A recorder times none of them, and an imported file only some.
std::string UntimedBetweenTwo(const std::vector<SectionCalls>& sections) {
  std::map<Collective, size_t> untimed;
  double bytes = 0, all = 0;
  for (const SectionCalls& section : sections) {
    for (const TraceCall& call : section.calls) {
      all += static_cast<double>(call.issued.call.bytes);
      if (static_cast<int>(call.issued.call.collective) < kTunableCollectives ||
          call.duration_source != DurationSource::kNone)
        continue;
      ++untimed[call.issued.call.collective];
      bytes += static_cast<double>(call.issued.call.bytes);
    }
  }
  if (untimed.empty()) return {};
  const std::string share = all > 0 ? fmt::format(" ({:.0f} % of the bytes)", 100 * bytes / all) : "";
  return fmt::format("The times of {}{}: no time above contains them. A profiler trace of PyTorch has them.",
                     CallsText(untimed), share);
}

bool HasCollectives(const std::vector<SectionCalls>& sections) {
  return std::ranges::any_of(sections, [](const SectionCalls& section) {
    return std::ranges::any_of(section.calls, [](const TraceCall& call) {
      return static_cast<int>(call.issued.call.collective) < kTunableCollectives;
    });
  });
}

std::string Paths(const WhyInput& input) {
  std::vector<std::string> paths;
  for (const WhyFile& file : input.files) paths.push_back(file.path);
  return fmt::format("{}", fmt::join(paths, " "));
}

}  // namespace

std::vector<std::string> MissingLines(const WhyInput& input, const WhyFacts& facts) {
  std::vector<std::string> lines;
  if (IsProfileAlone(input) && Lacks(input, "calls"))
    return {
        "Which collectives these are, of what size and among how many ranks: a profile with the host's "
        "activities too (torch.profiler with activities of the CPU and of CUDA)."};
  if (IsProfileAlone(input))
    return {
        "What ranks say to each other: a profile of several steps, taken in a process that calls "
        "torch.distributed."};
  if (!input.trace && input.measurements.empty())
    return {
        "What the job calls: no call is logged. NCCL logs calls with NCCL_DEBUG=INFO "
        "NCCL_DEBUG_SUBSYS=INIT,ENV,COLL,TUNING."};
  if (!input.trace)
    return {
        "What a training step gains: a sweep times calls alone. `dynamiccl ab` and `dynamiccl pilot` compare "
        "steps."};
  if (const std::string untimed = UntimedBetweenTwo(facts.sections); !untimed.empty())
    lines.push_back(untimed);
  if (facts.times.kinds.empty() && HasCollectives(facts.sections))
    lines.push_back(fmt::format(
        "How long collectives take: a profiler trace of PyTorch, or `DYNAMICCL_TIMES=all {}`.", kRecord));
  if (const std::string backend = OtherBackend(input); backend == "dynamiccl")
    lines.push_back(
        fmt::format("Which algorithm and protocol hostccl used: `DYNAMICCL_TIMES=all {}`.", kRecord));
  else if (!backend.empty())
    lines.push_back(
        fmt::format("What NCCL would do: {} is no NCCL. On CPUs the same script runs over the backend "
                    "`dynamiccl`, which makes "
                    "calls of NCCL (docs/torch_backend.md).",
                    backend));
  else if (const ChosenCalls chosen = CountChosen(input, facts.sections); chosen.without_algorithm > 0)
    lines.push_back(
        fmt::format("Which algorithm and protocol NCCL used for {} of {} calls: a log with NCCL_DEBUG=INFO "
                    "NCCL_DEBUG_SUBSYS=INIT,COLL,TUNING of every rank, or `{}`.",
                    chosen.without_algorithm, chosen.all, kRecord));
  if (static_cast<int>(input.trace->sections.size()) < facts.ranks)
    lines.emplace_back("For whom ranks wait: the same files of the other ranks, given together.");
  if (input.devices.empty() && OtherBackend(input).empty())
    lines.emplace_back(
        "What hides behind computation: a profiler trace of one rank (torch.profiler, with CUDA "
        "activities).");
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
    return {"the profile, in https://ui.perfetto.dev: it has no collective that could be chosen better"};
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
