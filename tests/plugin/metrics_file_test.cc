// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/metrics_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

namespace dynamiccl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

CollectiveCall CallOf(Collective collective, uint64_t bytes) {
  CollectiveCall call;
  call.collective = collective;
  call.bytes = bytes;
  return call;
}

class MetricsFileTest : public ::testing::Test {
 protected:
  MetricsFileTest() {
    ledger_->CountCall(CallOf(Collective::kAllReduce, 1000), Coverage::kTunable);
    ledger_->CountCall(CallOf(Collective::kAllReduce, 24), Coverage::kTunable);
    ledger_->CountCall(CallOf(Collective::kSend, 7), Coverage::kPointToPoint);
    ledger_->CountDecision(Collective::kAllReduce, DecidedBy::kPolicy);
  }

  MetricsSource Source() const {
    return {.rank = 3,
            .mode = "frozen",
            .policy_hash = "abc",
            .calls = ledger_,
            .entries = &entries_,
            .records_lost = 5};
  }

  std::shared_ptr<CallLedger> ledger_ = std::make_shared<CallLedger>();
  ComputedEntries entries_;
};

TEST_F(MetricsFileTest, CountsWhatWasCalledAndWhoDecided) {
  const std::string text = MetricsText(Source());
  EXPECT_THAT(
      text, HasSubstr("dynamiccl_calls_total{collective=\"AllReduce\",coverage=\"tunable\",rank=\"3\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("dynamiccl_call_bytes_total{collective=\"AllReduce\",coverage=\"tunable\","
                              "rank=\"3\"} 1024\n"));
  EXPECT_THAT(text, HasSubstr("{collective=\"Send\",coverage=\"point_to_point\",rank=\"3\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("dynamiccl_decisions_total{collective=\"AllReduce\",decided_by=\"policy\","
                              "rank=\"3\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("dynamiccl_trace_records_lost_total{rank=\"3\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("mode=\"frozen\",policy=\"abc\",rank=\"3\"} 1\n"));
}

TEST_F(MetricsFileTest, CountsWhatTheLstmRecognises) {
  DecisionKey key{Collective::kAllGather, 4096, 1, Role::kBackwardGather};
  key.phase = Phase::kBackward;
  key.stage = ZeroStage::kStage3;
  CallLedger of_communicator;
  for (int call = 0; call < 3; ++call) of_communicator.CountRecognised(key);
  of_communicator.CountRecognised({Collective::kAllReduce, 4});
  of_communicator.CountChange();
  ledger_->Add(of_communicator);
  const std::string text = MetricsText(Source());
  EXPECT_THAT(text, HasSubstr("dynamiccl_recognised_calls_total{role=\"backward_gather\",phase=\"backward\","
                              "stage=\"3\",rank=\"3\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("{role=\"unknown\",phase=\"unknown\",stage=\"unknown\",rank=\"3\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("dynamiccl_structure_changes_total{rank=\"3\"} 1\n"));
  MetricsSource without = Source();
  without.policy_hash.clear();
  EXPECT_THAT(MetricsText(without), Not(HasSubstr("recognised"))) << "no policy recognises anything";
}

TEST_F(MetricsFileTest, TimesArePutBesideWhatWasPredicted) {
  CollectiveTimes times;
  TimeStatistics statistics;
  ConfigChoice choice;
  choice.config = {Algorithm::kRing, Protocol::kLL, 2};
  choice.default_config = {Algorithm::kTree, Protocol::kSimple, 4};
  choice.predicted_log2 = 20 << 16;  // 2^20 picoseconds
  entries_.Note({4, 2, {Collective::kAllReduce, SizeClassOf(1024), Role::kScalar}}, choice);
  entries_.Note({4, 2, {Collective::kReduce, SizeClassOf(1024), Role::kScalar}}, ConfigChoice{});
  MetricsSource source = Source();
  source.times = &times;
  times.Charge(1'500'000);
  const std::string text = MetricsText(source);
  EXPECT_THAT(
      text,
      HasSubstr("dynamiccl_predicted_seconds{ranks=\"4\",nodes=\"2\",collective=\"AllReduce\","
                "bytes=\"1024\",role=\"scalar\",config=\"Ring/LL/2\",default=\"Tree/Simple/4\",rank=\"3\"} "
                "1.04"));
  EXPECT_THAT(text, Not(HasSubstr("collective=\"Reduce\"")));
  EXPECT_THAT(text, HasSubstr("dynamiccl_timing_seconds_total{rank=\"3\"} 0.0015\n"));
}

// Checks the part of the exposition format that is used. Every sample must belong to the family above it.
TEST_F(MetricsFileTest, EveryLineIsPrometheusText) {
  CollectiveTimes times;
  MetricsSource source = Source();
  source.times = &times;
  for (const int rank : {-1, 0, 12}) {
    source.rank = rank;
    std::istringstream lines(MetricsText(source));
    std::string line, family;
    std::set<std::string> families, samples;
    const std::regex sample("([a-z_]+)\\{([a-z_]+=\"[^\"\\\\]*\"(,[a-z_]+=\"[^\"\\\\]*\")*)?\\} [-+.e0-9]+");
    while (std::getline(lines, line)) {
      std::smatch match;
      if (line.starts_with("# TYPE ")) {
        family = line.substr(7, line.find(' ', 7) - 7);
        EXPECT_TRUE(families.insert(family).second) << line;
      } else if (!line.starts_with("# HELP ")) {
        ASSERT_TRUE(std::regex_match(line, match, sample)) << line;
        EXPECT_TRUE(match[1].str().starts_with(family)) << line;
        EXPECT_TRUE(samples.insert(line.substr(0, line.rfind(' '))).second) << "twice: " << line;
      }
    }
    EXPECT_GE(families.size(), 8u);
  }
}

TEST_F(MetricsFileTest, MemoryPressureIsThereWhereTheProgramSaidIt) {
  EXPECT_THAT(MetricsText(Source()), Not(HasSubstr("memory_pressure")));
  MetricsSource source = Source();
  source.memory_pressure = 2;
  EXPECT_THAT(MetricsText(source), HasSubstr("dynamiccl_memory_pressure{rank=\"3\"} 2\n"));
}

TEST_F(MetricsFileTest, SaysWhichValuesAreAgreed) {
  EXPECT_THAT(MetricsText(Source()), Not(HasSubstr("agreed_value")));
  MetricsSource source = Source();
  source.values = {{"bucket_mb", 5}, {"window", -1}};
  const std::string text = MetricsText(source);
  EXPECT_THAT(text, HasSubstr("dynamiccl_agreed_value{name=\"bucket_mb\",rank=\"3\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("dynamiccl_agreed_value{name=\"window\",rank=\"3\"} -1\n"));
}

TEST_F(MetricsFileTest, SaysWhatTheGuardDid) {
  EXPECT_THAT(MetricsText(Source()), Not(HasSubstr("table_versions")));
  GuardTotals guard;
  guard.versions[static_cast<size_t>(GuardReason::kSlowerThanNccl)] = 3;
  guard.failed = 2;
  guard.lost = 4;
  guard.probing_ns = 1'500'000'000;
  guard.guarded_ns[static_cast<size_t>(Criticality::kExposed)] = 200'000'000'000;
  MetricsSource source = Source();
  source.guard = &guard;
  const std::string text = MetricsText(source);
  EXPECT_THAT(text, HasSubstr("dynamiccl_table_versions_total{reason=\"slower_than_NCCL\",rank=\"3\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("dynamiccl_table_versions_total{reason=\"trials_begin\",rank=\"3\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("dynamiccl_table_versions_failed_total{rank=\"3\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("dynamiccl_guard_calls_lost_total{rank=\"3\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("dynamiccl_probing_seconds_total{rank=\"3\"} 1.5\n"));
  EXPECT_THAT(text, HasSubstr("dynamiccl_guarded_seconds_total{criticality=\"exposed\",rank=\"3\"} 200\n"));
}

}  // namespace
}  // namespace dynamiccl
