// SPDX-License-Identifier: Apache-2.0
// What `dynamiccl bench` prints: nccl-tests' lines and columns, with p50, p99, spread and percent of the copy
// limit after them.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "tools/bench/collective_bench.h"
#include "tools/commands/bench_options.h"
#include "tools/report/json_output.h"

namespace dynamiccl {

// Who the ranks are, gathered from all of them.
struct RankIdentity {
  int pid = 0;
  std::string host;
};
Result<std::vector<RankIdentity>> GatherIdentities(BenchSession& session);

// Prints on rank 0 what it is given.
class BenchTable {
 public:
  BenchTable(const BenchCommandOptions& given, const BenchOptions& options)
      : given_(given), options_(options) {}

  void Header(const BenchSession& session, const std::vector<RankIdentity>& ranks) const;
  void Row(const BenchRow& row) const;
  void Footer(const std::vector<BenchRow>& rows) const;

 private:
  void Columns() const;
  void Half(const BenchTimes& times) const;

  const BenchCommandOptions& given_;
  const BenchOptions& options_;
};

// nccl-tests' getFloatStr: as many decimals as fit.
std::string FitNumber(double value, int width);
uint64_t WrongElements(const std::vector<BenchRow>& rows);
Json BenchJson(const BenchSession& session, const BenchOptions& options, const std::vector<BenchRow>& rows);

}  // namespace dynamiccl
