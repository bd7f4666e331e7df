// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <random>

#include "tests/traces/import/damaged_copies.h"

namespace dynamiccl {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// Returns the text that DeepSpeed prints for a size, by the formulas of its comms_logging.py.
std::string SizeText(double bytes) {
  const char* const units[] = {"B", "KB", "MB", "GB"};
  const int unit = static_cast<int>(std::floor(std::log(bytes) / std::log(1024.0)));
  return fmt::format("{} {}", std::round(bytes / std::pow(1024, unit) * 100) / 100, units[unit]);
}

struct Logged {
  std::string operation;
  double bytes;
  double ms;
};

// Returns algbw and busbw in Gbps.
std::pair<double, double> Bandwidths(const Logged& call, int ranks) {
  const double n = ranks;
  const double gbps = call.bytes / call.ms * 8 / 1e6;
  if (call.operation == "all_reduce") return {2 * gbps, 2 * gbps * (n - 1) / n};
  if (call.operation == "broadcast") return {gbps, gbps};
  const double total = call.operation == "all_gather_into_tensor" ? gbps * n : gbps;
  return {total, total * (n - 1) / n};
}

std::string Line(const Logged& call, int ranks) {
  const auto [algbw, busbw] = Bandwidths(call, ranks);
  return fmt::format(
      "[2026-01-01 10:00:00,000] [INFO] [logging.py:96:log_dist] [Rank 0] comm op: {} | time (ms): {:.2f} | "
      "msg "
      "size: {} | algbw (Gbps): {:.2f} | busbw (Gbps): {:.2f}\n",
      call.operation, call.ms, SizeText(call.bytes), algbw, busbw);
}

const std::vector<Logged> kCalls = {{"all_reduce", 2 << 20, 1.5},
                                    {"all_gather_into_tensor", 64 << 10, 0.25},
                                    {"reduce_scatter_tensor", 512 << 10, 0.5},
                                    {"broadcast", 1000, 0.12}};

std::string Log(int ranks) {
  std::string log = "Time to load fused_adam op: 0.1 seconds\n";
  for (const Logged& call : kCalls) log += Line(call, ranks);
  return log +
         "comm op: barrier | time (ms): 9.00 | msg size: 0B | algbw (Gbps): 0.00 | busbw (Gbps): 0.00\n";
}

std::string Table(int ranks) {
  std::string table =
      fmt::format("{:<20}{:<20}{:<20}{:<20}{:<20}{:<20}{:<20}\n", "Comm. Op", "Message Size", "Count",
                  "Total Latency(ms)", "Avg Latency(ms)", "tput_avg (Gbps)", "busbw_avg (Gbps)");
  for (const Logged& call : kCalls) {
    const auto [algbw, busbw] = Bandwidths(call, ranks);
    table += fmt::format("{}\n{:<20}{:<20}{:<20}{:<20.2f}{:<20.2f}{:<20.2f}{:<20.2f}\n", call.operation, " ",
                         SizeText(call.bytes), 7, 7 * call.ms, call.ms, algbw, busbw);
  }
  return table;
}

TEST(DeepSpeedComms, LinesBecomeCalls) {
  const auto imported = ImportText(Log(8), "");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->trace->sections[0].world, 8);
  const SectionCalls calls = CallsOf(imported->trace->sections[0]);
  ASSERT_EQ(calls.calls.size(), kCalls.size());
  EXPECT_EQ(calls.calls[0].issued.call.bytes, 2u << 20);
  EXPECT_EQ(calls.calls[0].issued.duration_ns, 1'500'000);
  EXPECT_EQ(calls.calls[0].issued.call.n_ranks, 8);
  EXPECT_EQ(calls.calls[1].issued.call.bytes, 8u * (64 << 10)) << "the total of 8 ranks";
  EXPECT_EQ(calls.calls[2].issued.call.bytes, 512u << 10) << "logged as the total";
  EXPECT_EQ(calls.calls[2].issued.call.collective, Collective::kReduceScatter);
  EXPECT_EQ(calls.calls[3].issued.call.bytes, 1000u);
  EXPECT_EQ(calls.calls[3].issued.root_or_peer, 0);
  EXPECT_EQ(CountOf(*imported, "root"), 1u);
  EXPECT_THAT(imported->notes, Contains(HasSubstr("1 line of operations that move no data")));
}

TEST(DeepSpeedComms, ATimeThatDoesNotFitItsBandwidthIsLeftOut) {
  std::string log = Log(8);
  log.replace(log.find("1.50"), 4, "7.50");
  const auto imported = ImportText(log, "");
  ASSERT_TRUE(imported) << imported.error().message;
  const SectionCalls calls = CallsOf(imported->trace->sections[0]);
  EXPECT_EQ(calls.calls.at(0).issued.duration_ns, -1);
  EXPECT_EQ(calls.calls.at(1).issued.duration_ns, 250'000);
  EXPECT_THAT(imported->notes, Contains(HasSubstr("1 call whose size, time and bandwidth contradict")));
}

TEST(DeepSpeedComms, BandwidthsByAnotherFormulaAreNoContradiction) {
  std::string log;
  for (int i = 0; i < 6; ++i) log += Line({"broadcast", 2 << 20, 0.05}, 8);  // too short to be checked
  for (const double ms : {1.5, 2.5, 3.5}) {
    std::string line = Line({"all_reduce", 2 << 20, ms}, 8);
    const size_t digits = line.find("algbw (Gbps): ") + 14;
    log += line.replace(digits, line.find(' ', digits) - digits, fmt::format("{:.2f}", 99 / ms));
  }
  const auto imported = ImportText(log, "");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(CallsOf(imported->trace->sections[0]).calls.at(6).issued.duration_ns, 1'500'000);
}

TEST(DeepSpeedComms, ExchangesKeepTheirNames) {
  const std::pair<std::string, Collective> named[] = {{"all_to_all", Collective::kAllToAll},
                                                      {"all_to_all_single", Collective::kAllToAll},
                                                      {"gather", Collective::kGather},
                                                      {"scatter", Collective::kScatter},
                                                      {"batch_isend_irecv", Collective::kSendRecv}};
  for (const auto& [name, collective] : named) {
    const auto imported = ImportText(Line({name, 1 << 20, 1.5}, 8), "");
    ASSERT_TRUE(imported) << imported.error().message;
    const IssuedCall issued = CallsOf(imported->trace->sections[0]).calls.at(0).issued;
    EXPECT_EQ(issued.call.collective, collective) << name;
    EXPECT_EQ(issued.call.bytes, 1u << 20);
  }
}

// The number of ranks is random. The ratio of the rounded bandwidths must give this number, or none.
TEST(DeepSpeedComms, TheNumberOfRanksIsToldOrLeftOpen) {
  std::mt19937_64 random(3);
  int told = 0;
  for (int i = 0; i < 40; ++i) {
    const int ranks = 2 + static_cast<int>(random() % 63);
    const auto imported = ImportText(Log(ranks), "deepspeed-comms");
    ASSERT_TRUE(imported) << imported.error().message;
    const int32_t world = imported->trace->sections[0].world;
    EXPECT_TRUE(world == ranks || world == 0) << world << " instead of " << ranks;
    EXPECT_EQ(CountOf(*imported, "group size"), world == 0 ? 1u : 0u);
    told += world == ranks;
  }
  EXPECT_GT(told, 10);
}

TEST(DeepSpeedComms, TheSummaryBecomesMeasurements) {
  const auto imported = ImportText(Table(4), "", "summary.log");
  ASSERT_TRUE(imported) << imported.error().message;
  const MeasurementFile& file = *imported->measurements;
  ASSERT_EQ(file.rows.size(), kCalls.size());
  EXPECT_EQ(file.rows[0].bytes, 2u << 20);
  EXPECT_THAT(file.rows[0].microseconds, ElementsAre(1500.0F));
  EXPECT_EQ(file.rows[1].bytes, 4u * (64 << 10));
  EXPECT_EQ(file.contexts[0].topology, "summary x4");
  EXPECT_EQ(file.contexts[0].model.fabric.n_ranks, 4);
  EXPECT_EQ(CountOf(*imported, "single times"), 28u);
  const auto both = ImportText(Log(4) + Table(4), "");
  ASSERT_TRUE(both);
  EXPECT_EQ(CallsOf(both->trace->sections.at(0)).calls.size(), kCalls.size());
  EXPECT_THAT(both->notes, Contains(HasSubstr("the table of the summary: left out")));
}

TEST(DeepSpeedComms, ASecondTableAndOtherOutputAreSkipped) {
  const std::string stragglers =
      "_______________________________\nBreakdown with straggler effect\n-------------------------------\n"
      "Comm. Op            Message Size        Count               Total comm lat(ms)  Total straggler(ms) "
      "Avg comm "
      "lat(ms)    Avg straggler(ms)\nall_reduce\n                    2.0 MB              7                   "
      "1.00    "
      "            1.00                0.10                0.10\n";
  const auto imported = ImportText(Table(4) + stragglers + "all_reduce of losses: done\n", "");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->measurements->rows.size(), kCalls.size());
}

TEST(DeepSpeedComms, EveryWrongLineIsNamed) {
  const auto error = [](const std::string& text) { return ErrorOf(text, "deepspeed-comms"); };
  EXPECT_THAT(error(""), HasSubstr("line 0: no call and no summary"));
  EXPECT_THAT(error("comm op: all_reduse | time (ms): 1 | msg size: 2.0 MB |\n"),
              HasSubstr("line 1: no collective 'all_reduse'"));
  EXPECT_THAT(error("comm op: all_reduce | time (ms): x | msg size: 2.0 MB |\n"),
              HasSubstr("without a time"));
  EXPECT_THAT(error("comm op: all_reduce | time (ms): 1 | msg size: 2.0 XB |\n"),
              HasSubstr("without a size"));
  EXPECT_THAT(error("Comm. Op  Avg Latency(ms)\n   2.0 MB 1 1 1 1 1\n"), HasSubstr("line 2: sizes before"));
  EXPECT_THAT(error("Comm. Op  Avg Latency(ms)\nall_reduce\n   2.0 MB 1 1\n"),
              HasSubstr("line 3: a row of 4 values"));
  EXPECT_THAT(error("Comm. Op  Avg Latency(ms)\nbroadcast\n   2.0 MB 1 1 1 1 1\n"),
              HasSubstr("do not tell the number of ranks"));
}

TEST(DeepSpeedComms, DamagedCopiesNeverCrash) {
  EXPECT_GT(ImportEveryTruncation(Log(8), "deepspeed-comms"), 0u);
  EXPECT_GT(ImportEveryTruncation(Table(8), "deepspeed-comms"), 0u);
  EXPECT_GT(ImportFlippedCopies(Log(8), "deepspeed-comms", 2000), 50u);
  EXPECT_GT(ImportFlippedCopies(Table(8), "deepspeed-comms", 2000), 50u);
}

}  // namespace
}  // namespace dynamiccl
