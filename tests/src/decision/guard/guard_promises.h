// SPDX-License-Identifier: Apache-2.0
// The promises of docs/guard.md as cases of the simulation. Each case runs jobs and reports what they showed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/src/decision/guard/simulated_job.h"

namespace dynamiccl::testing {

struct PromiseOptions {
  uint64_t first_seed = 1;
  int seeds = 3;
  int keys = 10;
  int quiet_minutes = 30;
};

struct Promise {
  std::string name;
  Timing timing = Timing::kAll;
  const char* noise = "";
  int jobs = 0;
  std::string figures;
  bool kept = true;
};

struct PromiseCase {
  const char* name;
  // Returns one promise for each kind of noise.
  std::vector<Promise> (*run)(const PromiseOptions& options, Timing timing);
};
std::span<const PromiseCase> PromiseCases();

}  // namespace dynamiccl::testing
