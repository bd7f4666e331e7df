// SPDX-License-Identifier: Apache-2.0
// Reads the exported table with the rules' own parser. It must answer as the trace's tuner did.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/decision/override_rules.h"
#include "tests/traces/any_trace.h"
#include "traces/export/trace_export.h"
#include "traces/format/trace_calls.h"

namespace dynamiccl {
namespace {

void AddDecision(SectionBuilder& builder, uint64_t number, Collective collective, uint64_t bytes,
                 const CollectiveConfig& config) {
  builder.Call(number, collective, bytes);
  CollectiveCall call;
  call.call_number = number;
  call.collective = collective;
  call.bytes = bytes;
  // The builder sets the time of asking, in the order of the records.
  builder.Add(DecisionRecord(0, call, {.asked_ns = 0, .config = config}));
}

TEST(TunerTable, AnswersAsTheTraceDid) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::mt19937_64 random(seed);
    SectionBuilder builder(0, 4);
    std::map<std::pair<Collective, uint64_t>, CollectiveConfig> wanted;
    for (uint64_t number = 0; number < 40; ++number) {
      const auto collective = static_cast<Collective>(random() % kTunableCollectives);
      const uint64_t bytes = 1 + random() % 20;
      const CollectiveConfig config{static_cast<Algorithm>(random() % kAlgorithms),
                                    static_cast<Protocol>(random() % kProtocols),
                                    static_cast<uint8_t>(random() % 3)};
      AddDecision(builder, number, collective, bytes, config);
      wanted[{collective, bytes}] = config;
    }
    const auto exported = ExportTunerTable({{builder.section()}});
    ASSERT_TRUE(exported);
    const auto rules = OverrideRules::Parse(exported->files[0].content, "table.csv");
    ASSERT_TRUE(rules) << rules.error().message << "\n" << exported->files[0].content;
    for (const auto& [key, config] : wanted) {
      const OverrideRule* const rule =
          rules->Match({.collective = key.first, .bytes = key.second, .n_nodes = 1, .n_ranks = 4});
      ASSERT_NE(rule, nullptr);
      EXPECT_EQ(rule->config, config);
      EXPECT_EQ(rules->Match({.collective = key.first, .bytes = key.second, .n_nodes = 1, .n_ranks = 5}),
                nullptr);
      EXPECT_EQ(rules->Match({.collective = key.first, .bytes = 1000, .n_nodes = 1, .n_ranks = 4}), nullptr);
    }
  }
}

TEST(TunerTable, JoinsNeighbouringSizesAndSaysWhatIsLeftOut) {
  SectionBuilder builder(0, 4);
  AddDecision(builder, 0, Collective::kAllReduce, 64, {Algorithm::kTree, Protocol::kLL, 2});
  AddDecision(builder, 1, Collective::kAllReduce, 4096, {Algorithm::kTree, Protocol::kLL, 2});
  AddDecision(builder, 2, Collective::kAllReduce, 8192, {Algorithm::kRing, Protocol::kSimple, 0});
  AddDecision(builder, 3, Collective::kAllReduce, 100, kLeaveNcclAlone);
  builder.Call(4, Collective::kAllReduce, 1);
  const auto exported = ExportTunerTable({{builder.section()}});
  EXPECT_THAT(exported->files[0].content,
              testing::EndsWith("allreduce,64,4096,tree,ll,2,1,4,-1,-1\n"
                                "allreduce,8192,8192,ring,simple,-1,1,4,-1,-1\n"));
  EXPECT_THAT(exported->notes, testing::ElementsAre(testing::HasSubstr("2 calls left out")));
}

}  // namespace
}  // namespace dynamiccl
