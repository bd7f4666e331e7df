// SPDX-License-Identifier: Apache-2.0
// Prints the table of docs/results/scale.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "src/base/statistics.h"
#include "tests/src/decision/scale/scale_on_paper.h"

namespace {

using namespace dynamiccl;
using namespace dynamiccl::testing;

double Least(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}
double Most(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

void PrintHeader() {
  fmt::print(
      "# step ms, share waited for and what is to be won: after the change; of the whole job: to win, gained "
      "(median, "
      "least), regret;\n# at the end: regret of a step; most lost so far at any time, worst 20 steps; % "
      "each; versions; "
      "messages of a switch, its attempts, calls, ms; messages a second\n");
  fmt::print(
      "{:14} {:>5} {:5} {:10} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>4} {:>6} {:>2} "
      "{:>4} "
      "{:>6} {:>6}\n",
      "system", "ranks", "step", "event", "ms", "waits", "win", "tried", "gain", "least", "regret", "end",
      "lost", "worst", "vers", "switch", "at", "call", "ms", "a sec");
}

void Print(const ScaledCase& scaled, const ScaleEvent& event, const ScaleResult& result) {
  const ScaledStep& step = result.after;
  const SwitchCost& cost = result.later_switch;
  fmt::print(
      "{:14} {:5} {:5} {:10} {:7.1f} {:6.1f} {:6.2f} {:6.2f} {:6.2f} {:6.2f} {:6.2f} {:6.2f} {:6.2f} "
      "{:6.1f} ",
      scaled.system->name, scaled.ranks, scaled.framework, event.name, step.nccl_ns / 1e6,
      100 * (1 - step.compute_ns / step.nccl_ns), 100 * result.to_win(),
      100 * (1 - step.best_tried_ns / step.nccl_ns), 100 * Median(result.gained), 100 * Least(result.gained),
      100 * result.regret(), 100 * Median(result.at_end), 100 * Most(result.lost_most),
      100 * Most(result.worst_20));
  fmt::print("{:4.0f} {:6} {:2} {:4} {:6.1f} {:6.0f}\n", Median(result.versions), cost.total(), cost.attempts,
             cost.calls, static_cast<double>(cost.ns) / 1e6, Median(result.message_rate));
  std::fflush(stdout);
}

void PrintAgreement(const std::vector<int>& ranks) {
  fmt::print("{:>5} {:>5} {:>8} {:>8} {:>8} {:>8} {:>5} {:>8} {:>6} {:>9}\n", "ranks", "us", "prepare",
             "pledge", "refuse", "verdict", "ask", "attempts", "ms", "waited ms");
  for (const int n : ranks) {
    for (const int64_t message_us : {2, 5, 10, 20}) {
      const SwitchCost cost = CostOfSwitch(n, {.leader_message_ns = 1000 * message_us}, false);
      const auto& m = cost.messages;
      fmt::print("{:5} {:5} {:8} {:8} {:8} {:8} {:5} {:8} {:6.1f} {:9.1f}\n", n, message_us, m[0], m[1], m[2],
                 m[3], m[4], cost.attempts, static_cast<double>(cost.ns) / 1e6,
                 static_cast<double>(cost.waited_ns) / 1e6);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The guard at many ranks on simulated systems.");
  ScaleOptions options;
  std::vector<std::string> systems{"dgx2-all-links", "dgx-a100", "dgx-h100"}, frameworks{"fsdp2", "ddp"};
  std::vector<int> ranks{64, 512, 4096};
  std::string only;
  app.add_option("--systems", systems, "Described systems.");
  app.add_option("--ranks", ranks, "Numbers of ranks.");
  app.add_option("--frameworks", frameworks, "fsdp2, ddp");
  app.add_option("--only", only, "An event; empty: all.");
  app.add_option("--steps", options.steps, "Of a job.");
  app.add_option("--seeds", options.seeds, "Jobs of each case.");
  app.add_option("--most-predicted", options.most_predicted,
                 "Try no config that is expected to take more than so many times NCCL's time; 0: all.");
  bool agreement = false;
  app.add_flag("--agreement", agreement,
               "Only what a switch costs, by the leader's microseconds for a message; a call every 5 ms.");
  CLI11_PARSE(app, argc, argv);
  if (agreement) {
    PrintAgreement(ranks);
    return 0;
  }
  PrintHeader();
  for (const std::string& system : systems) {
    for (const std::string& framework : frameworks) {
      for (const int n : ranks) {
        for (const ScaleEvent& event : ScaleEvents()) {
          if (!only.empty() && only != event.name) continue;
          const ScaledCase scaled{FindDescribedSystem(system), framework, n, {}};
          const auto result = RunAtScale(scaled, event, options);
          if (!result) {
            fmt::print(stderr, "{}\n", result.error().message);
            return 1;
          }
          Print(scaled, event, *result);
        }
      }
    }
  }
  return 0;
}
