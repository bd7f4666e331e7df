// SPDX-License-Identifier: Apache-2.0
// The guard's promises in virtual time, any number of seeds: what docs/results/guard.md states.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "tests/src/decision/guard/guard_promises.h"

namespace {

using namespace dynamiccl::testing;

void Print(const Promise& promise) {
  fmt::print("{:12} {:8} {:8} {:4} jobs: {}\n", promise.name, Name(promise.timing), promise.noise,
             promise.jobs, promise.figures);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The guard in virtual time: a bad policy, a degraded link, quiet, and overlapped keys.");
  PromiseOptions options;
  std::string only;
  app.add_option("--seeds", options.seeds, "Seeds of each case.")->check(CLI::PositiveNumber);
  app.add_option("--first-seed", options.first_seed, "The first of them.");
  app.add_option("--keys", options.keys, "Keys of the job.")->check(CLI::Range(1, 40));
  app.add_option("--quiet-minutes", options.quiet_minutes, "Of each quiet job.")->check(CLI::PositiveNumber);
  app.add_option(
      "--only", only,
      "bad-policy, slower, spoilt, degraded, quiet, store, straggler, hidden, growing, odd-fabric, crowded, "
      "short or short-slower; empty: all.");
  std::string timing_only;
  app.add_option("--timing", timing_only, "all, planned or windows; empty: each of them.");
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
