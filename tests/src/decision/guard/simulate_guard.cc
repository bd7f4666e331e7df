// SPDX-License-Identifier: Apache-2.0
// Runs the guard's promises in virtual time with any number of seeds. docs/results/guard.md contains its
// output.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "tests/src/decision/guard/guard_promises.h"

namespace {

using namespace dynamiccl::testing;

void Print(const Promise& promise) {
  fmt::print("{:12} {:8} {:8} {:4} jobs: {}\n", promise.name, Name(promise.timing), promise.noise,
             promise.jobs, promise.figures);
}

std::vector<std::string> CaseNames() {
  std::vector<std::string> names;
  for (const PromiseCase& each : PromiseCases()) names.emplace_back(each.name);
  return names;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The guard in virtual time: what docs/results/guard.md states, for any seeds.");
  PromiseOptions options;
  std::string only;
  app.add_option("--seeds", options.seeds, "Seeds of each case.")->check(CLI::PositiveNumber);
  app.add_option("--first-seed", options.first_seed, "The first of them.");
  app.add_option("--keys", options.keys, "Keys of the job.")->check(CLI::Range(1, 40));
  app.add_option("--quiet-minutes", options.quiet_minutes, "Of each quiet job.")->check(CLI::PositiveNumber);
  app.add_option("--only", only, "The case to run; without it, all of them.")
      ->check(CLI::IsMember(CaseNames()));
  std::string timing_only;
  app.add_option("--timing", timing_only, "How calls are timed; without it, in each of these ways.")
      ->check(CLI::IsMember(std::vector<std::string>{"all", "planned", "windows"}));
  CLI11_PARSE(app, argc, argv);
  bool kept = true;
  for (const PromiseCase& each : PromiseCases()) {
    if (!only.empty() && only != each.name) continue;
    for (const Timing timing : {Timing::kAll, Timing::kPlanned, Timing::kWindows}) {
      if (!timing_only.empty() && timing_only != Name(timing)) continue;
      for (const Promise& promise : each.run(options, timing)) {
        Print(promise);
        kept &= promise.kept || timing == Timing::kWindows;
      }
    }
  }
  fmt::print("{}\n", kept ? "kept with all calls timed and with planned times"
                          : "NOT kept with all calls timed or with planned times");
  return kept ? 0 : 1;
}
