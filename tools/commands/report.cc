// SPDX-License-Identifier: Apache-2.0
// `dynamiccl report`: one offline HTML file from what demo, record and sweep left.
#include "tools/report/report.h"

#include <spdlog/spdlog.h>

#include "tools/command_table.h"
#include "tools/exit_code.h"

namespace dynamiccl {

Result<int> ReportCommand(CommandLine& line) {
  std::vector<std::string> inputs;
  std::string output;
  bool json = false;
  line.app().add_option("inputs", inputs, "demo.json, .ctrace and .measurements files")->required();
  line.app().add_option("-o,--output", output, "HTML file to write");
  line.app().add_flag("--json", json, "The same as JSON on standard output");
  if (const auto exit_code = line.Parse()) return *exit_code;
  if (output.empty() && !json) {
    return WithHint(MakeError(ErrorKind::kInvalidArgument, "dynamiccl report: nothing to write"),
                    "name the file with -o report.html, or use --json");
  }
  DYNAMICCL_TRY(const ReportInputs read, ReadReportInputs(inputs));
  if (json) PrintJson(ReportJson(read));
  if (output.empty()) return kExitOk;
  DYNAMICCL_CHECK_OK(WriteTextFile(output, RenderReport(read)));
  if (!json) fmt::print("{}\n", output);
  return kExitOk;
}

}  // namespace dynamiccl
