// SPDX-License-Identifier: Apache-2.0
// `dynamiccl doctor`: findings as a table or as JSON; exit code 1 when one of them is FAIL. With
// --compare-nccl it shows instead what an upgrade of NCCL changes (doctor_nccl.h). A finding that is not OK
// has a second line, which says what to do:
//
//   OK    hostccl    /opt/dynamiccl/lib/hostccl/libnccl.so.2
//   WARN  NCCL_ALGO  Ring
//                    -> the algorithm is pinned: a policy is asked only for the rest; unset it to change that
#include "tools/command_table.h"
#include "tools/commands/doctor_nccl.h"
#include "tools/commands/print_findings.h"

namespace dynamiccl {
namespace {

// Registers --compare-nccl and the options that only make sense with it.
void AddCompareOptions(CLI::App& app, CompareNcclOptions* compare) {
  auto* releases =
      app.add_option("--compare-nccl", compare->releases,
                     "Instead: what release B of NCCL chooses by itself otherwise than A; of more "
                     "releases, each against the one before");
  releases->expected(2, 100)->type_name("A B");
  app.add_option("--machine", compare->machine, "Of this machine only: dgx_h100, dgx_a100, ...")
      ->needs(releases)
      ->type_name("NAME");
  app.add_option("--choices", compare->choices,
                 "What releases choose (default: the file of this installation)")
      ->needs(releases)
      ->type_name("FILE");
  app.add_flag("--markdown", compare->markdown, "As tables of Markdown, algorithms and protocols alone")
      ->needs(releases)
      ->excludes("--json");
}

}  // namespace

Result<int> DoctorCommand(CommandLine& line) {
  std::string home;
  CompareNcclOptions compare;
  bool json = false;
  line.app().add_option("--home", home, "Installation to look at (default: the one of this program)");
  line.app().add_flag("--json", json, "As JSON");
  AddCompareOptions(line.app(), &compare);
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_TRY(const Installation installation, FindInstallation(home));
  compare.json = json;
  if (!compare.releases.empty()) return CompareNccl(installation, compare);
  return PrintFindings(Examine(installation), json);
}

}  // namespace dynamiccl
