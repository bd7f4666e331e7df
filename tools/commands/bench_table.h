// SPDX-License-Identifier: Apache-2.0
// What `dynamiccl bench` prints: nccl-tests' lines and columns, followed by p50, p99, spread and percentage
// of the copy limit.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "tools/bench/collective_bench.h"
#include "tools/commands/bench_options.h"
#include "tools/report/json_output.h"

namespace dynamiccl {

// Process and host of one rank, for the table's head.
struct RankIdentity {
  int pid = 0;
  std::string host;
};
// Identities of all ranks, by rank. All ranks must call it.
Result<std::vector<RankIdentity>> GatherIdentities(BenchSession& session);

// Prints on rank 0. Both arguments of the constructor must outlive it.
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

// nccl-tests' getFloatStr: as many decimals as fit into `width`.
std::string FitNumber(double value, int width);
// Sum over all rows; 0 where nothing was checked.
uint64_t WrongElements(const std::vector<BenchRow>& rows);
// The benchmark's result as JSON, schema 2.
Json BenchJson(const BenchSession& session, const BenchOptions& options, const std::vector<BenchRow>& rows);

}  // namespace dynamiccl
