// SPDX-License-Identifier: Apache-2.0
// Prints the demo's result as text.
#include <fmt/format.h>

#include "src/collective/size_class.h"
#include "tools/demo/demo.h"

namespace dynamiccl {
namespace {

std::string Microseconds(const Timing& timing) {
  return timing.repeats == 0 ? "-" : fmt::format("{:.0f}", timing.median);
}

// Change of a time in percent, "-12 %", or "noise" if the quartile ranges of the two times touch.
std::string Verdict(const Timing& reference, const Timing& timing) {
  if (reference.repeats == 0 || timing.repeats == 0) return "";
  if (!ClearlyDiffer(reference, timing)) return "noise";
  return fmt::format("{:+.0f} %", 100 * (timing.median / reference.median - 1));
}

void PrintChoices(const DemoResult& result) {
  fmt::print("{:<5} {:<14} {:>7}  {:>8} {:>8} {:>7} {:>8} {:>7}  {:<20} {:<20} {}\n", "stage", "collective",
             "bytes", "default", "ours", "change", "best", "change", "choice", "best choice", "held out");
  for (const ChoiceRow& row : result.choices) {
    const std::string held_out = row.topology_held_out ? "topology " + row.topology
                                 : row.size_held_out   ? "size class"
                                                       : "";
    fmt::print("{:<5} {:<14} {:>7}  {:>8} {:>8} {:>7} {:>8} {:>7}  {:<20} {:<20} {}\n",
               row.stage < 0 ? "-" : std::to_string(row.stage), row.collective, FormatBytes(row.bytes),
               Microseconds(row.default_us), Microseconds(row.our_us), Verdict(row.default_us, row.our_us),
               Microseconds(row.best_us), Verdict(row.default_us, row.best_us), row.our_config,
               row.best_config, held_out);
  }
}

void PrintStepTimes(const DemoResult& result) {
  fmt::print("\n{:<5} {:<14} {:>9} {:>18} {:>6}\n", "stage", "arm", "step (ms)", "of the default's", "turns");
  for (const StepTimeRow& row : result.step_times) {
    const std::string ratio = row.ratio == 0  ? ""
                              : row.high == 0 ? fmt::format("{:.3f}", row.ratio)
                                              : fmt::format("{:.3f} to {:.3f}", row.low, row.high);
    fmt::print("{:<5} {:<14} {:>9.1f} {:>18} {:>6}\n", row.stage, row.arm, row.milliseconds.median, ratio,
               row.milliseconds.repeats);
  }
}

void PrintWholeRuns(const DemoResult& result) {
  if (result.whole_runs.empty()) return;
  fmt::print("\n{:<16} {:<15} {:>6} {:>13} {:>16}   whole runs\n", "fabric", "arm", "steps", "mean step, ms",
             "last fifth, ms");
  for (const WholeRunRow& row : result.whole_runs)
    fmt::print("{:<16} {:<15} {:>6} {:>13.1f} {:>16.1f}\n", row.fabric, row.arm, row.steps, row.mean_ms,
               row.end_ms);
}

void PrintRecognition(const DemoResult& result) {
  fmt::print("\n{:<10} {:>7} {:>7} {:>7} {:>7} {:>8}   calls recognised as\n", "true stage", "0", "1", "2",
             "3", "unknown");
  for (const RecognitionRow& row : result.recognition) {
    fmt::print("{:<10}", row.true_stage);
    for (size_t i = 0; i < row.recognised.size(); ++i)
      fmt::print(" {:>{}}", row.recognised[i], i == 4 ? 8 : 7);
    fmt::print("\n");
  }
}

}  // namespace

void PrintDemo(const DemoResult& result) {
  fmt::print(
      "Times in microseconds: medians; changes that do not stand out of the quartiles are called noise.\n\n");
  PrintChoices(result);
  PrintStepTimes(result);
  PrintWholeRuns(result);
  PrintRecognition(result);
  fmt::print("\n");
  for (const std::string& finding : result.findings) fmt::print("{}\n", finding);
}

}  // namespace dynamiccl
