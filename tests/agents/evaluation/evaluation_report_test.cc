// SPDX-License-Identifier: Apache-2.0
#include "agents/evaluation/evaluation_report.h"

#include <gmock/gmock.h>

namespace dynamiccl::agents {
namespace {

TEST(FormatTables, SaysUnderTheTableWhatEachColumnMeans) {
  RegretSummary summary;
  summary.chooser = "policy";
  const std::string text = FormatTables({.regrets = {summary}});
  const size_t legend = text.find("Regret: the choice's time");
  ASSERT_NE(legend, text.npos);
  EXPECT_LT(text.find("\nseen               policy"), legend);
  for (const char* column : {"split", "who", "keys", "mean %", "interval", "time %", "p95 %", "worst %",
                             "speed-up", "changed", ">5 % slower", "surely so", "1.3x best", "probing cost",
                             "run %", "20 steps %", "clear keys, won %", "others slower"}) {
    EXPECT_LT(text.find(column), legend) << "no column " << column;
    EXPECT_NE(text.find(column, legend), text.npos) << "no meaning of " << column;
  }
}

TEST(FormatTables, HasNoLegendWithoutATable) {
  EXPECT_THAT(FormatTables({}), testing::Not(testing::HasSubstr("split:")));
}

}  // namespace
}  // namespace dynamiccl::agents
