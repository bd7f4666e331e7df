// SPDX-License-Identifier: Apache-2.0
// What the object loaded into jobs shows and needs: a symbol too many could shadow a program's own, and a
// library too many may be missing there or of another version.
#include <gmock/gmock.h>

#include <cstdio>
#include <set>
#include <sstream>
#include <string>

namespace dynamiccl {
namespace {

std::string OutputOf(const std::string& command) {
  std::string output;
  FILE* pipe = ::popen(command.c_str(), "r");
  char buffer[4096];
  while (pipe != nullptr && std::fgets(buffer, sizeof(buffer), pipe) != nullptr) output += buffer;
  if (pipe != nullptr) ::pclose(pipe);
  return output;
}

TEST(Exports, AreThePluginsTheInterposedFunctionsAndTheMarkers) {
  std::set<std::string> symbols;
  std::istringstream lines(OutputOf("nm -D --defined-only " DYNAMICCL_TEST_PRELOAD));
  for (std::string address, type, name; lines >> address >> type >> name;) symbols.insert(name);
  const std::set<std::string> expected{
      "dynamicclMarkPhase", "dynamicclMarkRole",  "ncclAllGather",          "ncclAllReduce",
      "ncclBcast",          "ncclBroadcast",      "ncclCommAbort",          "ncclCommDestroy",
      "ncclCommInitAll",    "ncclCommInitRank",   "ncclCommInitRankConfig", "ncclCommSplit",
      "ncclGetUniqueId",    "ncclGroupEnd",       "ncclGroupSimulateEnd",   "ncclGroupStart",
      "ncclRecv",           "ncclReduce",         "ncclReduceScatter",      "ncclSend",
      "ncclTunerPlugin_v2", "ncclTunerPlugin_v3", "ncclTunerPlugin_v4",     "ncclTunerPlugin_v5",
      "ncclTunerPlugin_v6", "ncclProfiler_v1",    "ncclProfiler_v2",        "ncclProfiler_v3",
      "ncclProfiler_v4",    "ncclProfiler_v5",    "ncclProfiler_v6",        "ncclProfiler_v7"};
  EXPECT_EQ(symbols, expected);
}

TEST(Exports, NothingButLibcIsNeeded) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "with sanitizers it needs their runtime, and fmt";
#endif
  std::istringstream lines(OutputOf("readelf -d " DYNAMICCL_TEST_PRELOAD));
  std::set<std::string> needed;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("(NEEDED)") == std::string::npos) continue;
    const size_t open = line.find('[');
    needed.insert(line.substr(open + 1, line.find(']') - open - 1));
  }
  needed.erase("ld-linux-x86-64.so.2");
  needed.erase("ld-linux-aarch64.so.1");
  // Older glibc keeps these apart; all are glibc.
  for (const char* part : {"libpthread.so.0", "libdl.so.2", "libm.so.6"}) needed.erase(part);
  EXPECT_THAT(needed, ::testing::ElementsAre("libc.so.6"));
}

TEST(Exports, NamesOfPluginLinkToTheSameObject) {
  const std::string folder =
      std::string(DYNAMICCL_TEST_PRELOAD).substr(0, std::string(DYNAMICCL_TEST_PRELOAD).rfind('/'));
  for (const char* name : {"/libnccl-tuner-dynamiccl.so", "/libnccl-profiler-dynamiccl.so"})
    EXPECT_EQ(OutputOf("readlink " + folder + name), "libdynamiccl.so\n");
}

}  // namespace
}  // namespace dynamiccl
