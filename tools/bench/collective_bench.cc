// SPDX-License-Identifier: Apache-2.0
// The loops of nccl-tests: type, operator, root, cycle, size. Each row of the table is first checked for
// correct data and then timed in rounds. A round times the call out of place and in place.
#include "tools/bench/collective_bench.h"

#include <algorithm>
#include <cmath>

#include "src/base/clock.h"
#include "src/base/statistics.h"
#include "tools/bench/copy_limit.h"
#include "tools/bench/data_check.h"

namespace dynamiccl {
namespace {

// Milliseconds for which each kind of memory copy is timed in a round. They suffice for hundreds of copies
// that fit the caches, or for one or two that do not.
constexpr double kProbeMilliseconds = 2;
// Fills a receive buffer before a checked call, so that an element that was not written is noticed.
constexpr std::byte kStale{0x35};

struct Buffers {
  std::byte* send = nullptr;
  std::byte* receive = nullptr;
};

// One half of a table row, out of place or in place: the call, its check, and the times of each round.
struct Half {
  BenchCall call;
  CheckedCall checked;
  bool in_place = false;
  std::vector<double> microseconds;
  std::vector<double> p50;
  std::vector<double> p99;
  std::vector<double> iterations;
};

// Describes the call that one row of the table measures.
struct RowPlan {
  uint64_t size = 0;
  DataType type = DataType::kFloat32;
  BenchOp op;
  int root = 0;
};

// One run of the benchmark. RunCollectiveBench owns it on its stack; session and options must outlive it.
// Methods that return Status or Result are collective: all ranks call them in the same order.
class Bench {
 public:
  Bench(BenchSession& session, const BenchOptions& options) : session_(session), options_(options) {}

  Status Run(const BenchObserver& observer);

 private:
  // Allocates buffers for the largest size. Creates the copy probe and the background load if the options ask
  // for them.
  Status Prepare();
  Status RunType(DataType type, const BenchObserver& observer);
  Result<BenchRow> MeasureRow(const RowPlan& plan);
  Status StartLoad(const Half& outside, const Half& inside);
  // Times the call out of place and in place in every round, so that a change of the machine affects both.
  Status TimeRounds(double footprint, Half& outside, Half& inside, std::vector<double>& copy);
  // Returns the call with its buffers. If it is in place, the send and receive buffers overlap as in
  // nccl-tests.
  Half MakeHalf(const RowPlan& plan, bool in_place) const;
  Status Check(Half& half, BenchTimes& times);
  Result<double> CheckOnce(const Half& half);
  Status Round(Half& half);
  Result<double> TimeIterations(Half& half);
  Status IssueIteration(const BenchCall& call);
  // Combines the values of all ranks into one, as nccl-tests' option -a says.
  Result<double> OverRanks(double value);
  void Finish(const Half& half, BenchTimes& times) const;

  BenchSession& session_;
  const BenchOptions& options_;
  Buffers buffers_;
  // Measures the cores' copy rate. Created only for hostccl: on GPUs that rate limits nothing.
  std::optional<CopyProbe> probe_;
  std::unique_ptr<cuda::BackgroundLoad> load_;
};

size_t LargestElement(const BenchOptions& options) {
  size_t width = 1;
  for (const DataType type : options.types) width = std::max(width, ElementBytes(type));
  return width;
}

Status Bench::Prepare() {
  const uint64_t largest = *std::max_element(options_.sizes.begin(), options_.sizes.end());
  const uint64_t room = largest + static_cast<uint64_t>(options_.unalign) * LargestElement(options_);
  DYNAMICCL_TRY(buffers_.send, session_.AllocateBuffer(room));
  DYNAMICCL_TRY(buffers_.receive, session_.AllocateBuffer(room));
  if (options_.copy_limit && session_.library().is_hostccl())
    probe_.emplace(session_, 2.0 * static_cast<double>(largest) * session_.place().n_ranks);
  if (!options_.background) return {};
  if (session_.library().is_hostccl()) {
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "a background load runs on a GPU, and hostccl on none"),
        "leave --background out; docs/emulated_links.md has background load on links");
  }
  DYNAMICCL_TRY(load_, cuda::BackgroundLoad::Prepare(*options_.background, session_.place().local_rank));
  return {};
}

Half Bench::MakeHalf(const RowPlan& plan, bool in_place) const {
  const int n = session_.place().n_ranks;
  const size_t width = ElementBytes(plan.type);
  const TestedCollective collective = options_.collective;
  const CallLayout layout = LayoutOf(collective, plan.size / width, width, n);
  const size_t shift = static_cast<size_t>(options_.unalign) * width;
  Half half{.call = {collective, layout.argument, plan.type, plan.op.op, plan.op.doubled, plan.root,
                     buffers_.send + shift, buffers_.receive + shift},
            .checked = {collective, layout.argument, plan.type, plan.op.op, plan.root, n, plan.op.doubled},
            .in_place = in_place};
  if (!in_place) return half;
  const size_t own = static_cast<size_t>(session_.place().rank) * width;
  half.call.send = buffers_.receive + shift + layout.send_in_place * own;
  half.call.receive = buffers_.receive + shift + layout.receive_in_place * own;
  return half;
}

// Runs the call once on fresh data and returns the number of wrong elements over all ranks.
Result<double> Bench::CheckOnce(const Half& half) {
  const int rank = session_.place().rank;
  Device& device = session_.device();
  const std::vector<std::byte> stale(ReceiveCount(half.checked) * ElementBytes(half.call.type), kStale);
  DYNAMICCL_CHECK_OK(device.CopyIn(half.call.receive, stale.data(), stale.size()));
  DYNAMICCL_CHECK_OK(device.FillInput(half.checked, rank, const_cast<std::byte*>(half.call.send)));
  // The barrier lets the call begin only when all ranks have filled their buffers: a rank must not read a
  // neighbour's buffer earlier.
  DYNAMICCL_CHECK_OK(session_.Barrier());
  DYNAMICCL_CHECK_OK(session_.Issue(half.call));
  DYNAMICCL_CHECK_OK(device.Synchronize());
  DYNAMICCL_TRY(const uint64_t wrong, device.CountWrong(half.checked, rank, half.call.receive));
  return session_.SumOverRanks(static_cast<double>(wrong));
}

// Checks the received data as often as the options say. The send buffer is filled even if nothing is checked,
// because calls on zeros or denormals may be faster or slower.
Status Bench::Check(Half& half, BenchTimes& times) {
  DYNAMICCL_CHECK_OK(session_.device().FillInput(half.checked, session_.place().rank,
                                                 const_cast<std::byte*>(half.call.send)));
  if (half.in_place && !HasInPlaceResult(options_.collective)) return {};
  for (int i = 0; i < options_.checks; ++i) {
    half.checked.repetition = static_cast<uint64_t>(i) + 1;
    DYNAMICCL_TRY(const double wrong, CheckOnce(half));
    times.wrong = times.wrong.value_or(0) + static_cast<uint64_t>(wrong);
  }
  return {};
}

// Issues one iteration: a group of calls, followed by the wait or barrier that nccl-tests' option -z asks
// for.
Status Bench::IssueIteration(const BenchCall& call) {
  const bool waits = options_.blocking == Blocking::kWait || options_.blocking == Blocking::kWaitAndBarrier;
  if (options_.aggregate > 1) DYNAMICCL_CHECK_OK(session_.GroupStart());
  for (int i = 0; i < options_.aggregate; ++i) DYNAMICCL_CHECK_OK(session_.Issue(call));
  if (options_.aggregate > 1) DYNAMICCL_CHECK_OK(session_.GroupEnd());
  if (waits) DYNAMICCL_CHECK_OK(session_.device().Synchronize());
  if (options_.blocking == Blocking::kWaitAndBarrier) DYNAMICCL_CHECK_OK(session_.Barrier());
  return {};
}

// Returns this rank's microseconds for one call, measured as nccl-tests does.
Result<double> Bench::TimeIterations(Half& half) {
  Device& device = session_.device();
  for (int i = 0; i < options_.warmups; ++i) DYNAMICCL_CHECK_OK(session_.Issue(half.call));
  DYNAMICCL_CHECK_OK(device.Synchronize());
  DYNAMICCL_CHECK_OK(session_.Barrier());
  device.ClearMarks();
  if (options_.per_iteration) DYNAMICCL_CHECK_OK(device.Mark());
  const int64_t begin = MonotonicNanoseconds();
  int64_t untimed = 0;
  for (int i = 0; i < options_.iterations; ++i) {
    DYNAMICCL_CHECK_OK(IssueIteration(half.call));
    if (options_.per_iteration) DYNAMICCL_CHECK_OK(device.Mark());
    if (options_.blocking != Blocking::kWaitAndBarrierUntimed) continue;
    DYNAMICCL_CHECK_OK(device.Synchronize());
    const int64_t done = MonotonicNanoseconds();
    DYNAMICCL_CHECK_OK(session_.Barrier());
    untimed += MonotonicNanoseconds() - done;
  }
  const int64_t issued = MonotonicNanoseconds();
  DYNAMICCL_CHECK_OK(device.Synchronize());
  const int64_t end = options_.cpu_time ? issued : MonotonicNanoseconds();
  return static_cast<double>(end - begin - untimed) * 1e-3 / options_.iterations / options_.aggregate;
}

Result<double> Bench::OverRanks(double value) {
  std::vector<double> values{options_.average == RankAverage::kRank0 && session_.place().rank != 0 ? 0
                                                                                                   : value};
  switch (options_.average) {
    case RankAverage::kMin:
      DYNAMICCL_CHECK_OK(session_.MinOverRanks(values));
      return values[0];
    case RankAverage::kMax:
      DYNAMICCL_CHECK_OK(session_.MaxOverRanks(values));
      return values[0];
    default:
      DYNAMICCL_CHECK_OK(session_.SumOverRanks(values));
      return values[0] / (options_.average == RankAverage::kMean ? session_.place().n_ranks : 1);
  }
}

// Times a call in one round: first calls back to back, then single calls.
Status Bench::Round(Half& half) {
  DYNAMICCL_TRY(const double own, TimeIterations(half));
  if (options_.per_iteration) {
    DYNAMICCL_TRY(std::vector<double> intervals, session_.device().Intervals());
    DYNAMICCL_CHECK_OK(session_.MaxOverRanks(intervals));
    for (size_t i = static_cast<size_t>(options_.skip); i < intervals.size(); ++i)
      half.iterations.push_back(intervals[i] / options_.aggregate);
  }
  DYNAMICCL_TRY(const double time, OverRanks(own));
  half.microseconds.push_back(time);
  std::vector<double> slowest{own};
  DYNAMICCL_CHECK_OK(session_.MaxOverRanks(slowest));
  const int count = options_.singles >= 0 ? options_.singles : SinglesFor(slowest[0]);
  DYNAMICCL_TRY(const std::vector<double> singles, TimeSingles(session_, half.call, count));
  half.p50.push_back(NearestRank(singles, 0.5));
  half.p99.push_back(NearestRank(singles, 0.99));
  return {};
}

IterationStatistics Summarize(const std::vector<double>& times) {
  if (times.empty()) return {};
  const double mean = Mean(times);
  double variance = 0;
  for (const double t : times) variance += (t - mean) * (t - mean) / static_cast<double>(times.size());
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  return {*least, *most, NearestRank(times, 0.5), NearestRank(times, 0.99),
          mean > 0 ? 100 * std::sqrt(variance) / mean : 0};
}

void Bench::Finish(const Half& half, BenchTimes& times) const {
  const int n = session_.place().n_ranks;
  times.microseconds = Median(half.microseconds);
  times.spread_percent = SpreadPercent(half.microseconds);
  const double bytes = AlgorithmBytes(options_.collective, half.call.count, ElementBytes(half.call.type), n);
  times.algorithm_gbps = bytes * 1e-3 / times.microseconds;
  times.bus_gbps = times.algorithm_gbps * BusFactor(options_.collective, n);
  times.p50_us = Median(half.p50);
  times.p99_us = Median(half.p99);
  times.iterations = Summarize(half.iterations);
}

Status Bench::TimeRounds(double footprint, Half& outside, Half& inside, std::vector<double>& copy) {
  for (int round = 0; round < options_.rounds; ++round) {
    if (probe_) {
      DYNAMICCL_TRY(const double gbps, probe_->Measure(footprint, kProbeMilliseconds));
      copy.push_back(gbps);
    }
    DYNAMICCL_CHECK_OK(Round(outside));
    DYNAMICCL_CHECK_OK(Round(inside));
  }
  return {};
}

// Starts the background load on the GPU. To load a kernel or to connect ranks for the first time may take
// until all work on the GPU has ended, which here means until the load ends. Therefore all ranks first run an
// untimed round of each call, even those without a load.
Status Bench::StartLoad(const Half& outside, const Half& inside) {
  if (!options_.background) return {};
  for (Half untimed : {outside, inside}) DYNAMICCL_CHECK_OK(Round(untimed));
  return load_ ? load_->Start() : Status{};
}

Result<BenchRow> Bench::MeasureRow(const RowPlan& plan) {
  const int n = session_.place().n_ranks;
  const size_t width = ElementBytes(plan.type);
  const CallLayout layout = LayoutOf(options_.collective, plan.size / width, width, n);
  BenchRow row{std::max(layout.send, layout.receive) * width,
               layout.argument,
               plan.type,
               plan.op,
               plan.root,
               {},
               {},
               {}};
  Half outside = MakeHalf(plan, false);
  Half inside = MakeHalf(plan, true);
  DYNAMICCL_CHECK_OK(Check(outside, row.out_of_place));
  DYNAMICCL_CHECK_OK(Check(inside, row.in_place));
  std::vector<double> copy;
  DYNAMICCL_CHECK_OK(StartLoad(outside, inside));
  const double footprint = FootprintBytes(options_.collective, layout, width, n);
  DYNAMICCL_CHECK_OK(TimeRounds(footprint, outside, inside, copy));
  if (load_) {
    DYNAMICCL_TRY(row.background, load_->Stop());
  }
  Finish(outside, row.out_of_place);
  Finish(inside, row.in_place);
  if (copy.empty()) return row;
  row.out_of_place.copy_limit_gbps = CopyLimit(options_.collective, n, false, Median(copy));
  row.in_place.copy_limit_gbps = CopyLimit(options_.collective, n, true, Median(copy));
  return row;
}

// Measures all rows of one type. An operation that has no operator gets one row instead of one for each
// operator. The same holds for the root.
Status Bench::RunType(DataType type, const BenchObserver& observer) {
  const std::vector<BenchOp> no_op{{}};
  const std::vector<int> no_root{0};
  for (const BenchOp& op : Reduces(options_.collective) ? options_.ops : no_op) {
    for (const int root : HasRoot(options_.collective) ? options_.roots : no_root) {
      for (int cycle = 0; options_.cycles == 0 || cycle < options_.cycles; ++cycle) {
        for (const uint64_t size : options_.sizes) {
          DYNAMICCL_TRY(const BenchRow row, MeasureRow({size, type, op, root}));
          observer.row(row);
        }
      }
    }
  }
  return {};
}

Status Bench::Run(const BenchObserver& observer) {
  DYNAMICCL_CHECK_OK(Prepare());
  for (const DataType type : options_.types) {
    if (options_.types.size() > 1 && !session_.Supports(type))
      observer.unsupported(type);
    else
      DYNAMICCL_CHECK_OK(RunType(type, observer));
  }
  return {};
}

}  // namespace

std::optional<double> BenchTimes::percent_of_copy_limit() const {
  if (!copy_limit_gbps) return std::nullopt;
  return 100 * algorithm_gbps / *copy_limit_gbps;
}

Result<double> TimeBackToBack(BenchSession& session, const BenchCall& call, int iterations, int warmups) {
  for (int i = 0; i < warmups; ++i) DYNAMICCL_CHECK_OK(session.Issue(call));
  DYNAMICCL_CHECK_OK(session.device().Synchronize());
  DYNAMICCL_CHECK_OK(session.Barrier());
  const int64_t begin = MonotonicNanoseconds();
  for (int i = 0; i < iterations; ++i) DYNAMICCL_CHECK_OK(session.Issue(call));
  DYNAMICCL_CHECK_OK(session.device().Synchronize());
  return static_cast<double>(MonotonicNanoseconds() - begin) * 1e-3 / iterations;
}

Result<std::vector<double>> TimeSingles(BenchSession& session, const BenchCall& call, int count) {
  std::vector<double> times;
  times.reserve(static_cast<size_t>(count));
  DYNAMICCL_CHECK_OK(session.Barrier());
  for (int i = 0; i < count; ++i) {
    const int64_t begin = MonotonicNanoseconds();
    DYNAMICCL_CHECK_OK(session.Issue(call));
    DYNAMICCL_CHECK_OK(session.device().Synchronize());
    times.push_back(static_cast<double>(MonotonicNanoseconds() - begin) * 1e-3);
  }
  DYNAMICCL_CHECK_OK(session.MaxOverRanks(times));
  return times;
}

double SpreadPercent(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double median = Median(values);
  return median > 0 ? 100 * (*most - *least) / median : 0;
}

int SinglesFor(double call_us) {
  constexpr double kTargetUs = 50e3;
  constexpr double kMax = 1000;
  return static_cast<int>(std::clamp(kTargetUs / std::max(call_us, 0.1), 10.0, kMax));
}

Status RunCollectiveBench(BenchSession& session, const BenchOptions& options, const BenchObserver& observer) {
  if (!RunsOn(options.collective, session.place().n_ranks)) {
    return MakeError(ErrorKind::kInvalidArgument, "dynamiccl bench: {} runs on 2, 4, 8 ... ranks, not on {}",
                     ProgramName(options.collective), session.place().n_ranks);
  }
  return Bench(session, options).Run(observer);
}

}  // namespace dynamiccl
