// SPDX-License-Identifier: Apache-2.0
// `dynamiccl-lab zero-paper`: simulates the ZeRO paper's figures and prints them beside the paper's values.
#include <fmt/format.h>

#include "studies/lab_commands.h"
#include "studies/zero_paper/zero_paper_figures.h"
#include "tools/exit_code.h"
#include "tools/report/json_output.h"
#include "tools/simulate/accelerator.h"
#include "tools/simulate/described_system.h"

namespace dynamiccl {
namespace {

struct ZeroPaperOptions {
  std::string figure = "all";
  std::string system = "dgx2";
  std::string accelerator = "v100";
  bool json = false;
};

Json ZeroPaperJson(const SimulatedFigure& figure) {
  Json points = Json::array(), claims = Json::array();
  for (const PaperPoint& point : figure.points) {
    Json one = {{"what", point.what}, {"value", point.value}, {"unit", point.unit}};
    one["printed"] = point.printed ? Json(*point.printed) : Json(nullptr);
    one["error"] = point.printed ? Json(*point.Error()) : Json(nullptr);
    if (point.step) {
      one["step_ns"] = point.step->step_ns;
      one["exposed_tensor_ns"] = point.step->exposed_tensor_ns;
      one["exposed_data_ns"] = point.step->exposed_data_ns;
      one["memory_bytes"] = point.step->memory_bytes;
      one["fits"] = point.step->fits;
    }
    points.push_back(std::move(one));
  }
  for (const PaperClaim& claim : figure.claims)
    claims.push_back({{"text", claim.text}, {"holds", claim.holds}});
  return {{"figure", figure.figure}, {"title", figure.title}, {"points", points}, {"claims", claims}};
}

Result<int> SimulateFigures(const ZeroPaperOptions& options) {
  const Accelerator* const accelerator = FindAccelerator(options.accelerator);
  if (accelerator == nullptr)
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "--accelerator: there is no '{}'", options.accelerator),
        "v100, a100 or h100");
  const DescribedSystem* const described = FindDescribedSystem(options.system);
  if (described == nullptr)
    return WithHint(
        MakeError(ErrorKind::kInvalidArgument, "--system: '{}' is not a described system", options.system),
        DescribedSystemNames());
  Json figures = Json::array();
  for (int number = 2; number <= 8; ++number) {
    if (options.figure != "all" && options.figure != fmt::format("fig{}", number)) continue;
    DYNAMICCL_TRY(const SimulatedFigure figure, SimulateFigure(number, *described, *accelerator));
    if (!options.json) fmt::print("{}\n", FormatFigure(figure));
    figures.push_back(ZeroPaperJson(figure));
  }
  if (figures.empty())
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "{}: no such figure", options.figure),
                    "fig2 to fig8, or all");
  if (options.json) PrintJson({{"schema", 1}, {"system", described->name}, {"figures", figures}});
  return kExitOk;
}

}  // namespace

Result<int> ZeroPaperCommand(CommandLine& line) {
  ZeroPaperOptions options;
  CLI::App& app = line.app();
  app.add_option("figure", options.figure, "fig2 to fig8, or all")->capture_default_str();
  app.add_option("--system", options.system, "One of " + DescribedSystemNames())->capture_default_str();
  app.add_option("--accelerator", options.accelerator, "v100, a100 or h100")->capture_default_str();
  app.add_flag("--json", options.json, "Write JSON instead of tables");
  if (const auto exit_code = line.Parse()) return *exit_code;
  return SimulateFigures(options);
}

}  // namespace dynamiccl
