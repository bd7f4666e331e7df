// SPDX-License-Identifier: Apache-2.0
// `dynamiccl demo`: the whole loop on one machine, into one folder (tools/demo).
#include "tools/demo/demo.h"

#include <spdlog/spdlog.h>

#include <cstdio>

#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/launch/signal_scope.h"
#include "tools/report/json_output.h"

namespace dynamiccl {

Result<int> DemoCommand(CommandLine& line) {
  DemoOptions options;
  options.output_dir = "demo";
  bool json = false;
  line.app().add_flag("--quick", options.quick,
                      "Some 2 minutes instead of 5: one fabric, fewer shapes, sizes and repeats");
  line.app().add_option("--data", options.text,
                        "Text file or folder (default: what fetch_shakespeare.sh fetched)");
  line.app().add_option("-o,--output", options.output_dir, "Folder for all results")->capture_default_str();
  line.app().add_option("--home", options.home, "Installation to use (default: the one of this program)");
  line.app().add_flag("--json", json, "The result as JSON on standard output instead of tables");
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_TRY(DemoSession session, DemoSession::Open(options));
  // A signal that comes between two jobs ends the demo at its next job, and the line below says what is kept.
  const SignalScope signals;
  const Status done = RunDemo(session);
  if (session.interrupted_by() != 0) {
    spdlog::warn("interrupted; what was finished is in {}", session.output_dir());
    return kExitSignalBase + session.interrupted_by();
  }
  DYNAMICCL_CHECK_OK(done);
  if (json)
    PrintJson(Json(nlohmann::json(session.result())));
  else
    PrintDemo(session.result());
  std::fflush(stdout);  // so that the next line stands after the tables in a log of both streams
  spdlog::info("done in {:.0f} s; the report is {}", session.Elapsed(), session.Output("report.html"));
  return kExitOk;
}

}  // namespace dynamiccl
