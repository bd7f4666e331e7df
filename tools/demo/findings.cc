// SPDX-License-Identifier: Apache-2.0
// Writes the findings of a demo as sentences: one for each ZeRO stage, one for each group of compared
// configs, and some that answer questions of a reader.
#include "tools/demo/demo_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace dynamiccl {
namespace {

// Step time of one compared setting (arm) in the ZeRO stage; null if it was not measured.
const StepTimeRow* StepTime(const DemoResult& result, int stage, const std::string& arm) {
  for (const StepTimeRow& row : result.step_times) {
    if (row.stage == stage && row.arm == arm) return &row;
  }
  return nullptr;
}

// Change of the step time with its 95 % interval, "-4.2 % (-6.0 to -2.1)", with a note if it is within the
// noise.
std::string Change(const StepTimeRow& row) {
  const auto percent = [](double ratio) { return 100 * (ratio - 1); };
  if (row.high == 0) return fmt::format("{:+.1f} %, of too few rounds to be sure", percent(row.ratio));
  return fmt::format("{:+.1f} % ({:+.1f} to {:+.1f}{})", percent(row.ratio), percent(row.low),
                     percent(row.high), row.differs() ? "" : ", within the noise");
}

void AddStepTimes(const DemoResult& result, std::vector<std::string>& findings) {
  for (int stage = 0; stage < kZeroStageCount; ++stage) {
    const StepTimeRow* usual = StepTime(result, stage, kDefaultArm);
    const StepTimeRow* ours = StepTime(result, stage, kOurArm);
    const StepTimeRow* best = StepTime(result, stage, kBestArm);
    if (usual == nullptr || ours == nullptr || best == nullptr) continue;
    const bool hopeless = !best->differs() && !ours->differs();
    findings.push_back(
        fmt::format("Stage {}: a step took {:.1f} ms by default, {} with the policy, {} with the best of "
                    "the sweep.{}",
                    stage, usual->milliseconds.median, Change(*ours), Change(*best),
                    hopeless ? " Nothing could be won here that stands out of the noise." : ""));
  }
}

// The whole run of one setting (arm, such as "adaptive") on this fabric; null if it is missing.
const WholeRunRow* WholeRun(const DemoResult& result, const std::string& fabric, const std::string& arm) {
  for (const WholeRunRow& row : result.whole_runs) {
    if (row.fabric == fabric && row.arm == arm) return &row;
  }
  return nullptr;
}

void AddWholeRuns(const DemoResult& result, std::vector<std::string>& findings) {
  for (const WholeRunRow& row : result.whole_runs) {
    if (row.arm != kDefaultArm) continue;
    if (std::optional<std::string> finding = FindingOfFabric(result, row.fabric))
      findings.push_back(std::move(*finding));
  }
}

// Number of compared calls for which the policy's choice was clearly faster or slower than NCCL's default.
struct Tally {
  int rows = 0;
  int faster = 0;
  int slower = 0;
  // Number of compared calls for which the best config of the sweep is clearly faster than NCCL's default.
  int could_be_faster = 0;
};

Tally TallyOf(const DemoResult& result, bool (*filter)(const ChoiceRow&)) {
  Tally tally;
  for (const ChoiceRow& row : result.choices) {
    if (!filter(row) || row.our_us.repeats == 0) continue;
    ++tally.rows;
    if (ClearlyDiffer(row.default_us, row.best_us) && row.best_us.median < row.default_us.median)
      ++tally.could_be_faster;
    if (!ClearlyDiffer(row.default_us, row.our_us)) continue;
    if (row.our_us.median < row.default_us.median)
      ++tally.faster;
    else
      ++tally.slower;
  }
  return tally;
}

void AddTally(const std::string& where, const Tally& tally, std::vector<std::string>& findings) {
  if (tally.rows == 0) return;
  findings.push_back(
      fmt::format("{}: of {} cases the policy's choice was faster than the default in {}, slower in {}, "
                  "equal within the noise in {}; "
                  "the best of the sweep was faster in {}.{}",
                  where, tally.rows, tally.faster, tally.slower, tally.rows - tally.faster - tally.slower,
                  tally.could_be_faster, tally.could_be_faster == 0 ? " Nothing could be won here." : ""));
}

void AddLosses(const DemoResult& result, std::vector<std::string>& findings) {
  if (result.losses.empty()) return;
  const auto& rows = result.losses;
  if (std::all_of(rows.begin(), rows.end(), [](const LossRow& row) { return row.bitwise_equal; })) {
    findings.push_back("Losses and final parameters are equal bit for bit in all stages and arms.");
    return;
  }
  const bool all_equal =
      std::all_of(rows.begin(), rows.end(), [](const LossRow& row) { return row.equal(); });
  double largest = 0;
  for (const LossRow& row : rows) largest = std::max(largest, row.largest_relative_difference);
  findings.push_back(
      fmt::format("Losses of the arms {} within the tolerance of {:.0e}; the largest relative difference is "
                  "{:.1e}.",
                  all_equal ? "are equal" : "ARE NOT EQUAL", rows.front().tolerance, largest));
}

void AddRecognition(const DemoResult& result, std::vector<std::string>& findings) {
  int64_t right = 0;
  int64_t unknown = 0;
  int64_t total = 0;
  for (const RecognitionRow& row : result.recognition) {
    for (size_t stage = 0; stage < row.recognised.size(); ++stage) {
      total += row.recognised[stage];
      if (stage == static_cast<size_t>(row.true_stage)) right += row.recognised[stage];
      if (stage == kZeroStageCount) unknown += row.recognised[stage];
    }
  }
  if (total == 0) return;
  const auto percent = [&](int64_t calls) {
    return 100.0 * static_cast<double>(calls) / static_cast<double>(total);
  };
  findings.push_back(
      fmt::format("The stage was recognised right after {:.1f} % of {} calls of a shape that training never "
                  "saw, wrong after {:.1f} %, and left unknown after {:.1f} %.",
                  percent(right), total, percent(total - right - unknown), percent(unknown)));
}

// The collectives, calls and bytes in one step of a ZeRO stage, as text for comparing stages.
std::string CallsOfStage(const DemoResult& result, int stage) {
  std::string calls;
  for (const FingerprintRow& row : result.fingerprints) {
    if (row.stage == stage)
      calls += fmt::format("{} {} {};", row.collective, row.calls_per_step, row.bytes_per_step);
  }
  return calls;
}

// Names pairs of ZeRO stages whose steps have the same calls and bytes, so that only the calls' order
// differs.
void AddTwins(const DemoResult& result, std::vector<std::string>& findings) {
  for (int a = 0; a < kZeroStageCount; ++a) {
    for (int b = a + 1; b < kZeroStageCount; ++b) {
      const std::string calls = CallsOfStage(result, a);
      if (calls.empty() || calls != CallsOfStage(result, b)) continue;
      findings.push_back(
          fmt::format("Stages {} and {} issued the same collectives with the same bytes a step: only their "
                      "order can tell "
                      "them apart, and where it does not, \"unknown\" is the honest answer.",
                      a, b));
    }
  }
}

// Names the runs that were started twice and those that are missing, so that the tables do not look more
// complete than they are.
void AddFailures(const DemoResult& result, std::vector<std::string>& findings) {
  if (!result.repeated.empty()) {
    findings.push_back(fmt::format("{} of the demo's runs failed and {} started once more: {}.",
                                   result.repeated.size(), result.repeated.size() == 1 ? "was" : "were",
                                   fmt::join(result.repeated, ", ")));
  }
  for (const NamedText& run : result.missing)
    findings.push_back(fmt::format("Missing: {}, which failed twice ({}).", run.name, run.text));
}

}  // namespace

std::optional<std::string> FindingOfFabric(const DemoResult& result, const std::string& fabric) {
  const auto* usual = WholeRun(result, fabric, kDefaultArm);
  const auto* adaptive = WholeRun(result, fabric, "adaptive");
  const auto* again = WholeRun(result, fabric, "adaptive again");
  const auto* one_channel = WholeRun(result, fabric, "one channel");
  const auto* noise = WholeRun(result, fabric, "default again");
  for (const WholeRunRow* row : {usual, adaptive, again, one_channel, noise})
    if (row == nullptr) return std::nullopt;
  const auto change = [&](const WholeRunRow* row) { return 100 * (row->mean_ms / usual->mean_ms - 1); };
  return fmt::format(
      "On the fabric \"{}\" a step took {:.1f} ms by default; in mode adaptive, from nothing, {:+.1f} % over "
      "the whole run and {:+.1f} % in its last fifth; with what that run had left, {:+.1f} % from the first "
      "step on; with one channel for all calls, {:+.1f} %. Default against default: {:+.1f} %.",
      fabric, usual->mean_ms, change(adaptive), 100 * (adaptive->end_ms / usual->end_ms - 1), change(again),
      change(one_channel), change(noise));
}

std::vector<std::string> FindingsOf(const DemoResult& result) {
  std::vector<std::string> findings;
  AddWholeRuns(result, findings);
  AddStepTimes(result, findings);
  const auto seen = [](const ChoiceRow& row) { return row.stage >= 0 && !row.size_held_out; };
  const auto between = [](const ChoiceRow& row) { return row.size_held_out && !row.topology_held_out; };
  const auto far = [](const ChoiceRow& row) { return row.topology_held_out; };
  AddTally("Collectives of sizes that the agents saw", TallyOf(result, seen), findings);
  AddTally("Size classes held out", TallyOf(result, between), findings);
  AddTally("Topology held out", TallyOf(result, far), findings);
  AddLosses(result, findings);
  AddRecognition(result, findings);
  AddTwins(result, findings);
  AddFailures(result, findings);
  return findings;
}

}  // namespace dynamiccl
