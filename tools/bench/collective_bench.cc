// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/collective_bench.h"

#include <algorithm>
#include <cmath>

#include "src/base/clock.h"
#include "tools/bench/data_check.h"

namespace dynamiccl {
namespace {

struct Buffers {
  std::byte* send = nullptr;
  std::byte* receive = nullptr;
};

// One size of one half: the call, and what its check needs.
struct Cell {
  BenchCall call;
  CheckedCall checked;
};

bool PerRank(Collective collective) {
  return collective == Collective::kAllGather || collective == Collective::kReduceScatter;
}

Cell MakeCell(const BenchOptions& options, const RankPlace& place, uint64_t bytes, const Buffers& buffers,
              bool in_place) {
  const size_t width = ElementBytes(options.type);
  const uint64_t parts = PerRank(options.collective) ? static_cast<uint64_t>(place.n_ranks) : 1;
  const uint64_t count = bytes / width / parts;
  Cell cell{.call = {options.collective, count, options.type, options.op, options.root, buffers.send,
                     buffers.receive},
            .checked = {options.collective, count, options.type, options.op, options.root, place.n_ranks}};
  if (!in_place) return cell;
  // As nccl-tests and NCCL define it: a rank's own part of the larger buffer.
  const size_t own = static_cast<size_t>(place.rank) * count * width;
  cell.call.send = options.collective == Collective::kAllGather ? buffers.receive + own : buffers.receive;
  if (options.collective == Collective::kReduceScatter) cell.call.receive = buffers.receive + own;
  return cell;
}

Status FillSend(BenchSession& session, const Cell& cell) {
  const std::vector<std::byte> input = InputOf(cell.checked, session.place().rank);
  return session.device().CopyIn(const_cast<std::byte*>(cell.call.send), input.data(), input.size());
}

Result<uint64_t> CheckOnce(BenchSession& session, const Cell& cell) {
  const size_t width = ElementBytes(cell.call.type);
  const int rank = session.place().rank;
  Device& device = session.device();
  std::vector<std::byte> output(ReceiveCount(cell.checked) * width);
  DYNAMICCL_CHECK_OK(session.Issue(cell.call));
  DYNAMICCL_CHECK_OK(device.Synchronize());
  DYNAMICCL_CHECK_OK(device.CopyOut(output.data(), cell.call.receive, output.size()));
  std::vector<double> wrong{static_cast<double>(CountWrong(cell.checked, rank, output))};
  DYNAMICCL_CHECK_OK(session.MaxOverRanks(wrong));
  return static_cast<uint64_t>(wrong[0]);
}

Result<std::vector<double>> TimeCalls(BenchSession& session, const BenchCall& call,
                                      const BenchOptions& options) {
  Device& device = session.device();
  for (int i = 0; i < options.warmups; ++i) DYNAMICCL_CHECK_OK(session.Issue(call));
  DYNAMICCL_CHECK_OK(session.Barrier());
  device.ClearMarks();
  DYNAMICCL_CHECK_OK(device.Mark());
  const int64_t begin = MonotonicNanoseconds();
  for (int i = 0; i < options.iterations; ++i) {
    DYNAMICCL_CHECK_OK(session.Issue(call));
    DYNAMICCL_CHECK_OK(device.Mark());
  }
  DYNAMICCL_CHECK_OK(device.Synchronize());
  const double total = static_cast<double>(MonotonicNanoseconds() - begin) * 1e-3;
  DYNAMICCL_TRY(std::vector<double> times, device.Intervals());
  times.push_back(total / options.iterations);
  return times;
}

Result<BenchTimes> Measure(BenchSession& session, const BenchOptions& options, const Cell& cell) {
  BenchTimes result;
  DYNAMICCL_CHECK_OK(FillSend(session, cell));
  if (options.check) {
    DYNAMICCL_TRY(result.wrong, CheckOnce(session, cell));
  }
  DYNAMICCL_TRY(std::vector<double> times, TimeCalls(session, cell.call, options));
  DYNAMICCL_CHECK_OK(session.MaxOverRanks(times));
  result.microseconds = times.back();
  times.pop_back();
  const int n = session.place().n_ranks;
  const uint64_t bytes = TotalBytes(options.collective, cell.call.count, ElementBytes(options.type), n);
  result.algorithm_gbps = static_cast<double>(bytes) * 1e-3 / result.microseconds;
  result.bus_gbps = result.algorithm_gbps * BusBandwidthFactor(options.collective, n);
  result.p50_us = Percentile(times, 0.5);
  result.p99_us = Percentile(times, 0.99);
  return result;
}

}  // namespace

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
  const size_t index = std::clamp<size_t>(rank, 1, values.size()) - 1;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(index), values.end());
  return values[index];
}

Status RunCollectiveBench(BenchSession& session, const BenchOptions& options,
                          const std::function<void(const BenchRow&)>& row) {
  const uint64_t largest = *std::max_element(options.sizes.begin(), options.sizes.end());
  Buffers buffers;
  DYNAMICCL_TRY(buffers.send, session.device().Allocate(largest));
  DYNAMICCL_TRY(buffers.receive, session.device().Allocate(largest));
  for (const uint64_t bytes : options.sizes) {
    const Cell outside = MakeCell(options, session.place(), bytes, buffers, false);
    const Cell inside = MakeCell(options, session.place(), bytes, buffers, true);
    const size_t width = ElementBytes(options.type);
    const uint64_t total = TotalBytes(options.collective, outside.call.count, width, session.place().n_ranks);
    if (total == 0) continue;
    BenchRow result{.bytes = total, .count = total / width};
    DYNAMICCL_TRY(result.out_of_place, Measure(session, options, outside));
    DYNAMICCL_TRY(result.in_place, Measure(session, options, inside));
    row(result);
  }
  return {};
}

}  // namespace dynamiccl
