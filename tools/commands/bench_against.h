// SPDX-License-Identifier: Apache-2.0
// `dynamiccl bench --against`: other libraries timed in turns with ours, and tables of what came out.
#pragma once

#include "tools/commands/bench_options.h"

namespace dynamiccl {

// The whole comparison: starts every side, measures every cell, prints, writes JSON. Exit code of the
// command.
Result<int> RunAgainst(const BenchCommandOptions& given, const BenchOptions& options);

// One of our own ranks in it, started with --control.
Result<int> RunComparedRank(const BenchCommandOptions& given);

}  // namespace dynamiccl
