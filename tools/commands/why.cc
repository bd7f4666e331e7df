// SPDX-License-Identifier: Apache-2.0
// `dynamiccl why`: one screen about a job, from any trace, log or dump that is at hand (tools/why).
#include <fmt/format.h>

#include "src/base/file_kind.h"
#include "src/policy/policy_file.h"
#include "tools/command_table.h"
#include "tools/exit_code.h"
#include "tools/launch/installation.h"
#include "tools/why/answer.h"
#include "tools/why/read_files.h"

namespace dynamiccl {

Result<int> WhyCommand(CommandLine& line) {
  std::vector<std::string> paths;
  std::string output;
  bool json = false;
  line.app()
      .add_option(
          "files", paths,
          "Traces, logs, dumps or sweeps of one job, or folders of them; the kind of each is told by content")
      ->required()
      ->check(CLI::ExistingPath);
  line.app().add_option("-o,--output", output, "Write the same as an HTML file");
  line.app().add_flag("--json", json, "JSON on standard output");
  if (const auto exit_code = line.Parse()) return *exit_code;
  DYNAMICCL_CHECK_OK(CheckOutputs({output}));
  DYNAMICCL_CHECK_OK(CheckIsNoInput(output, FilesOf(paths)));
  DYNAMICCL_TRY(const WhyInput input, ReadWhyFiles(paths));
  const std::string shipped = ShippedPolicy();
  std::shared_ptr<const Policy> policy;
  if (!shipped.empty()) policy = ReadPolicyFile(shipped).value_or(nullptr);
  DYNAMICCL_TRY(const std::vector<WhyPart> parts, AnswerWhy(input, policy.get()));
  if (!output.empty()) DYNAMICCL_CHECK_OK(WriteTextFile(output, WhyHtml(parts)));
  if (json) PrintJson(WhyJson(input, parts));
  if (!json) fmt::print("{}", WhyText(parts));
  return kExitOk;
}

}  // namespace dynamiccl
