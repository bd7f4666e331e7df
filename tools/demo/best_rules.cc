// SPDX-License-Identifier: Apache-2.0
// The demo's rules for the arm "best of sweep".
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
