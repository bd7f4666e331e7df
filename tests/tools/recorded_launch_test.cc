// SPDX-License-Identifier: Apache-2.0
#include "tools/record/recorded_launch.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/traces/any_trace.h"
#include "tools/launch/temporary_folder.h"
#include "traces/format/trace_archive.h"
#include "traces/format/trace_files.h"
#include "traces/format/trace_reader.h"
#include "traces/format/trace_writer.h"

namespace dynamiccl {
namespace {

TEST(RemoveParts, LeavesThePartsOfOtherOutputs) {
  const auto folder = TemporaryFolder::Create("parts");
  ASSERT_TRUE(folder);
  const auto of = [&](const std::string& output) {
    std::string part = PartPattern(folder->File(output));
    part.replace(part.find("%h"), 2, "node1.cluster");
    part.replace(part.find("%p"), 2, "4711");
    return part;
  };
  const std::string others[] = {of("run.2"), of("run~2"), of("ru"), folder->File("run.node.4711.part")};
  for (const std::string& path : others) std::ofstream(path) << "a part";
  std::ofstream(of("run")) << "a part";
  RemoveParts(folder->File("run"));
  EXPECT_FALSE(std::filesystem::exists(of("run")));
  for (const std::string& path : others) EXPECT_TRUE(std::filesystem::exists(path)) << path;
}

TEST(LaunchRecorded, WritesTheFormOfTheName) {
  const auto folder = TemporaryFolder::Create("form");
  ASSERT_TRUE(folder);
  for (const char* const name : {"run.ctrace", "run.ctracez", "run.jsonl"}) {
    const std::string output = folder->File(name);
    const auto launch = [&](const LaunchPlan&) -> Result<LaunchOutcome> {
      std::string part = PartPattern(output);
      part.replace(part.find("%h"), 2, "node1");
      part.replace(part.find("%p"), 2, "1");
      Trace trace;
      trace.sections.push_back(SectionBuilder(0, 1).section());
      EXPECT_TRUE(WriteTrace(part, trace));
      LaunchOutcome outcome;
      outcome.ranks.push_back({.rank = 0, .exit_code = 0});
      return outcome;
    };
    ASSERT_TRUE(LaunchRecorded({}, output, launch));
    std::string head(8, '\0');
    std::ifstream(output, std::ios::binary).read(head.data(), 8);
    EXPECT_EQ(IsTraceArchive(std::as_bytes(std::span(head))), output.ends_with("z")) << name;
    EXPECT_EQ(head.starts_with('{'), output.ends_with(".jsonl")) << name;
    EXPECT_TRUE(ReadTraceFiles({output})) << name;
  }
}

// One launch starts two programs one after the other, as in `record -- sh -c './a && ./b'`.
TEST(LaunchRecorded, KeepsThePartsOfProgramsThatWereTheSameRank) {
  const auto folder = TemporaryFolder::Create("parts");
  ASSERT_TRUE(folder);
  const std::string output = folder->File("run.ctrace");
  std::vector<std::string> parts;
  bool ends_well = true;
  const auto launch = [&](const LaunchPlan&) -> Result<LaunchOutcome> {
    for (const char* const process : {"1", "2"}) {
      std::string part = PartPattern(output);
      part.replace(part.find("%h"), 2, "node1");
      part.replace(part.find("%p"), 2, process);
      Trace trace;
      trace.sections.push_back(SectionBuilder(0, 1).section());
      EXPECT_TRUE(WriteTrace(part, trace));
      parts.push_back(part);
    }
    LaunchOutcome outcome;
    outcome.ranks.push_back({.rank = 0, .exit_code = ends_well ? 0 : 1});
    if (!ends_well) outcome.first_failed = outcome.ranks.front();
    return outcome;
  };
  const auto recorded = LaunchRecorded({}, output, launch);
  ASSERT_FALSE(recorded);
  EXPECT_NE(recorded.error().message.find("two traces of rank 0; what each process recorded stays in '" +
                                          output + "~*.part'"),
            std::string::npos)
      << recorded.error().message;
  for (const std::string& part : parts) EXPECT_TRUE(ReadTrace(part)) << part;
  ends_well = false;
  const auto failed = LaunchRecorded({}, output, launch);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->processes, 0U);
  EXPECT_NE(failed->warning.find("two traces of rank 0"), std::string::npos) << failed->warning;
  for (const std::string& part : parts) EXPECT_TRUE(ReadTrace(part)) << part;
}

}  // namespace
}  // namespace dynamiccl
