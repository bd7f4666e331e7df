// SPDX-License-Identifier: Apache-2.0
// Formats rows with the columns and spacing of nccl-tests, followed by further columns.
#include "tools/commands/bench_table.h"

#include <cmath>
#include <ctime>

#include "src/base/settings.h"
#include "tools/version.h"

namespace dynamiccl {
namespace {

// Characters of a host's name that are shown; names of cluster nodes are shorter.
constexpr size_t kHostLetters = 32;
constexpr const char* kHalves = "           out-of-place                       in-place          ";
constexpr const char* kHalvesEach =
    "              out-of-place (+ per-iteration)                                in-place (+ per-iteration)";

std::string Timestamp() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

// nccl-tests prints "none" for operations without an operator, and -1 for those without a root.
std::string_view OpColumn(const BenchOptions& options, const BenchRow& row) {
  return Reduces(options.collective) ? row.op.name() : "none";
}
int RootColumn(const BenchOptions& options, const BenchRow& row) {
  return HasRoot(options.collective) ? row.root : -1;
}

Json BenchTableJson(const BenchTimes& times, bool per_iteration) {
  Json json = {{"time_us", times.microseconds},
               {"spread_percent", times.spread_percent},
               {"algbw_gbps", times.algorithm_gbps},
               {"busbw_gbps", times.bus_gbps},
               {"p50_us", times.p50_us},
               {"p99_us", times.p99_us}};
  json["wrong"] = times.wrong ? Json(*times.wrong) : Json();
  const auto percent = times.percent_of_copy_limit();
  json["copy_limit_gbps"] = percent ? Json(*times.copy_limit_gbps) : Json();
  json["percent_of_copy_limit"] = percent ? Json(*percent) : Json();
  if (!per_iteration) return json;
  const IterationStatistics& i = times.iterations;
  json["per_iteration"] = {{"min_us", i.min},
                           {"max_us", i.max},
                           {"p50_us", i.p50},
                           {"p99_us", i.p99},
                           {"cv_percent", i.deviation_percent}};
  return json;
}

void PrintBlocking(Blocking blocking) {
  if (blocking == Blocking::kWaitAndBarrier)
    fmt::print("# Blocking Enabled: wait and barrier after each inner iteration (-m) \n");
  if (blocking == Blocking::kWait)
    fmt::print("# Blocking Enabled: wait after each inner iteration (-m), no barrier \n");
  if (blocking == Blocking::kWaitAndBarrierUntimed)
    fmt::print(
        "# Blocking Enabled: wait and barrier after each outer iteration (-n); time excludes barrier \n");
}

}  // namespace

Result<std::vector<RankIdentity>> GatherIdentities(BenchSession& session) {
  const auto rank = static_cast<size_t>(session.place().rank);
  const auto n = static_cast<size_t>(session.place().n_ranks);
  // A rank sends its process id and the letters of its host's name as doubles, because ranks can exchange
  // only numbers.
  constexpr size_t kRow = kHostLetters + 1;
  std::vector<double> values(n * kRow, 0);
  const std::string host = HostName();
  values[rank * kRow] = ::getpid();
  for (size_t i = 0; i < std::min(host.size(), kHostLetters); ++i) values[rank * kRow + 1 + i] = host[i];
  DYNAMICCL_CHECK_OK(session.SumOverRanks(values));
  std::vector<RankIdentity> ranks(n);
  for (size_t r = 0; r < n; ++r) {
    ranks[r].pid = static_cast<int>(values[r * kRow]);
    for (size_t i = 1; i < kRow && values[r * kRow + i] != 0; ++i)
      ranks[r].host += static_cast<char>(values[r * kRow + i]);
  }
  return ranks;
}

std::string FitNumber(double value, int width) {
  for (const int decimals : {2, 1, 0}) {
    std::string text = fmt::format("{:{}.{}f}", value, width, decimals);
    if (text.size() <= static_cast<size_t>(width)) return text;
  }
  return fmt::format("{:{}.{}e}", value, width, width >= 7 ? 1 : 0);
}

void BenchTable::Header(const BenchSession& session, const std::vector<RankIdentity>& ranks) const {
  int version = 0;
  session.library().functions().GetVersion(&version);
  const uint64_t least = options_.sizes.front();
  fmt::print("# dynamiccl {} nccl-headers={} nccl-library={} ({})\n", kVersion, DYNAMICCL_NCCL_API_VERSION,
             version, session.library().Description());
  fmt::print("# Collective test starting: {}_perf\n", ProgramName(options_.collective));
  const bool by_factor = given_.factor > 1;
  fmt::print(
      "# nThread {} nGpus {} minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg iters: {} "
      "validation: {} graph: 0 unalign: {}\n",
      given_.threads, session.place().n_ranks / given_.threads, least, given_.end,
      by_factor ? fmt::format("{}", given_.factor) : given_.step, by_factor ? "factor" : "bytes",
      options_.warmups, options_.iterations, options_.aggregate, options_.checks, options_.unalign);
  PrintBlocking(options_.blocking);
  fmt::print(
      "# time: mean of calls issued back to back, median of {} rounds; p50, p99: single calls, each followed "
      "by a synchronise\n#\n# Using devices\n",
      options_.rounds);
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    fmt::print("#  Rank {:2} Group  0 Pid {:6} on {:>10} device {:2} [0000:00:00] {}\n", rank,
               ranks[rank].pid, ranks[rank].host, rank,
               session.library().is_hostccl() ? "host memory" : "GPU");
  }
  Columns();
}

void BenchTable::Columns() const {
  const char* time = options_.cpu_time ? "cputime" : "time";
  const bool each = options_.per_iteration;
  // Scripts read the first columns, so they are as nccl-tests prints them. Further columns follow.
  fmt::print("#\n# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}{:^33}{:^33}\n", "", "", "", "", "",
             each ? kHalvesEach : kHalves, "out-of-place", "in-place");
  fmt::print("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "size", "count", "type", "redop", "root");
  for (int half = 0; half < 2; ++half) {
    fmt::print("  {:>7}  {:>6}  {:>6}  {:>6}", time, "algbw", "busbw", "#wrong");
    if (each) fmt::print("  {:>7}  {:>7}  {:>7}  {:>7}", "i_min", "i_max", "i_p99", "i_cv%");
  }
  for (int half = 0; half < 2; ++half)
    fmt::print("  {:>7}  {:>7}  {:>6}  {:>5}", "p50", "p99", "spread", "%copy");
  fmt::print("{}\n# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", given_.timestamps != 0 ? "  timestamp" : "", "(B)",
             "(elements)", "", "", "");
  for (int half = 0; half < 2; ++half) {
    fmt::print("  {:>7}  {:>6}  {:>6}  {:>6}", "(us)", "(GB/s)", "(GB/s)", "");
    if (each) fmt::print("  {:>7}  {:>7}  {:>7}  {:>7}", "(us)", "(us)", "(us)", "(%)");
  }
  for (int half = 0; half < 2; ++half)
    fmt::print("  {:>7}  {:>7}  {:>6}  {:>5}", "(us)", "(us)", "(%)", "(%)");
  fmt::print("\n");
}

void BenchTable::Half(const BenchTimes& times) const {
  fmt::print("  {}  {}  {}  {:>6}", FitNumber(times.microseconds, 7), FitNumber(times.algorithm_gbps, 6),
             FitNumber(times.bus_gbps, 6), times.wrong ? std::to_string(*times.wrong) : "N/A");
  if (!options_.per_iteration) return;
  const IterationStatistics& i = times.iterations;
  for (const double value : {i.min, i.max, i.p99, i.deviation_percent})
    fmt::print("  {}", FitNumber(value, 7));
}

void BenchTable::Row(const BenchRow& row) const {
  fmt::print("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}", row.bytes, row.count, Name(row.type),
             OpColumn(options_, row), RootColumn(options_, row));
  Half(row.out_of_place);
  Half(row.in_place);
  for (const BenchTimes* times : {&row.out_of_place, &row.in_place}) {
    const auto percent = times->percent_of_copy_limit();
    fmt::print("  {}  {}  {}  {:>5}", FitNumber(times->p50_us, 7), FitNumber(times->p99_us, 7),
               FitNumber(times->spread_percent, 6), percent ? fmt::format("{:.0f}", *percent) : "N/A");
  }
  if (given_.timestamps != 0) fmt::print("  {}", Timestamp());
  fmt::print("\n");
  if (row.background) {
    fmt::print("# background {}: {} blocks, {:.0f} GB/s read and written\n", given_.background,
               row.background->blocks, row.background->gigabytes_per_second);
  }
  std::fflush(stdout);
}

// Prints the lines with which nccl-tests ends: wrong elements and average bandwidth.
void BenchTable::Footer(const std::vector<BenchRow>& rows) const {
  double bus = 0;
  for (const BenchRow& row : rows) bus += row.out_of_place.bus_gbps + row.in_place.bus_gbps;
  const uint64_t wrong = WrongElements(rows);
  const size_t halves = std::max<size_t>(1, 2 * rows.size());
  fmt::print("# {:<20} : {} {}\n", "Out of bounds values", wrong, wrong == 0 ? "OK" : "FAILED");
  fmt::print("# {:<20} : {:g} \n#\n", "Avg bus bandwidth", bus / static_cast<double>(halves));
  fmt::print("# Collective test concluded: {}_perf\n", ProgramName(options_.collective));
}

uint64_t WrongElements(const std::vector<BenchRow>& rows) {
  uint64_t wrong = 0;
  for (const BenchRow& row : rows)
    wrong += row.out_of_place.wrong.value_or(0) + row.in_place.wrong.value_or(0);
  return wrong;
}

Json BenchJson(const BenchSession& session, const BenchOptions& options, const std::vector<BenchRow>& rows) {
  Json list = Json::array();
  for (const BenchRow& row : rows) {
    list.push_back({{"bytes", row.bytes},
                    {"count", row.count},
                    {"type", Name(row.type)},
                    {"op", OpColumn(options, row)},
                    {"root", RootColumn(options, row)},
                    {"out_of_place", BenchTableJson(row.out_of_place, options.per_iteration)},
                    {"in_place", BenchTableJson(row.in_place, options.per_iteration)}});
    if (!row.background) continue;
    list.back()["background"] = {{"blocks", row.background->blocks},
                                 {"rounds", row.background->rounds},
                                 {"gbps", row.background->gigabytes_per_second}};
  }
  return {{"schema", 2},
          {"library", session.library().Description()},
          {"collective", ProgramName(options.collective)},
          {"ranks", session.place().n_ranks},
          {"iterations", options.iterations},
          {"rounds", options.rounds},
          {"checked", options.checks > 0},
          {"rows", list}};
}

}  // namespace dynamiccl
