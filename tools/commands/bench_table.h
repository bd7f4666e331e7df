// SPDX-License-Identifier: Apache-2.0
// Prints the output of `dynamiccl bench`: the lines and columns of nccl-tests, followed by p50, p99, spread,
// and the bandwidth as a percentage of that of plain memory copies.
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
// Returns process and host of every rank, in the order of ranks. All ranks must call this function.
Result<std::vector<RankIdentity>> GatherIdentities(BenchSession& session);

// Prints the table of a benchmark. Only rank 0 uses it. The constructor's arguments must outlive the object.
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
// Returns the number of wrong elements in all rows together; 0 if no data was checked.
uint64_t WrongElements(const std::vector<BenchRow>& rows);
// The benchmark's result as JSON, schema 2.
Json BenchJson(const BenchSession& session, const BenchOptions& options, const std::vector<BenchRow>& rows);

}  // namespace dynamiccl
