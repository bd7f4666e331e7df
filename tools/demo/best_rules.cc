// SPDX-License-Identifier: Apache-2.0
// Writes the rules file that forces, for each call of the demo, the fastest config that the sweep measured.
#include "tools/report/best_rules.h"

#include "tools/demo/demo_steps.h"
#include "tools/report/json_output.h"

namespace dynamiccl {

Result<std::string> WriteBestRules(DemoSession& session, const SweptConfigs& swept) {
  const std::string path = session.Output("best.csv");
  DYNAMICCL_CHECK_OK(WriteTextFile(path, BestRulesOf(CellsOf(swept.all), session.plan().topology)));
  return path;
}

}  // namespace dynamiccl
