// SPDX-License-Identifier: Apache-2.0
// Tests which symbols the object shows and which libraries it needs when it is loaded into a job. A
// superfluous symbol could replace one of the program. A superfluous library may be missing on another
// machine or have another version.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include "src/nccl_abi/nccl_function_list.h"

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

// Returns the functions of the table, without those that are only passed on.
std::set<std::string> InterposedFunctions() {
  std::set<std::string> names;
#define DYNAMICCL_INTERPOSED(since, door, result, name, parameters, arguments) \
  if (std::string_view(#door) != "Passed") names.insert("nccl" #name);
  DYNAMICCL_NCCL_FUNCTIONS(DYNAMICCL_INTERPOSED)
  DYNAMICCL_NCCL_FURTHER_FUNCTIONS(DYNAMICCL_INTERPOSED)
#undef DYNAMICCL_INTERPOSED
  return names;
}

TEST(Exports, AreThePluginsTheInterposedFunctionsAndTheMarkers) {
  std::set<std::string> symbols;
  std::istringstream lines(OutputOf("nm -D --defined-only " DYNAMICCL_TEST_PRELOAD));
  for (std::string address, type, name; lines >> address >> type >> name;) symbols.insert(name);
  std::set<std::string> expected = InterposedFunctions();
  // 12 functions move data, and 8 of them also have a form with a configuration. 15 functions are for
  // communicators and groups.
  EXPECT_EQ(expected.size(), 12u + 8 + 15);
  for (int version = 2; version <= 7; ++version)
    expected.insert("ncclTunerPlugin_v" + std::to_string(version));
  for (int version = 1; version <= 7; ++version) expected.insert("ncclProfiler_v" + std::to_string(version));
  expected.insert({"dynamicclAgreedValue", "dynamicclAuditedDoor", "dynamicclMarkMemory",
                   "dynamicclMarkPhase", "dynamicclMarkRole", "dynamicclMarkSamples",
                   "dynamicclProposeValue"});
  EXPECT_EQ(symbols, expected);
}

// NCCL 2.27.3 finds a loaded plugin only by its library's name (OwnPluginName).
TEST(Exports, ItsNameFindsTheObjectThatIsLoaded) {
  EXPECT_THAT(OutputOf("readelf -d " DYNAMICCL_TEST_PRELOAD),
              ::testing::HasSubstr("Library soname: [libdynamiccl.so]"));
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
  // In older versions, these are separate libraries of glibc.
  for (const char* part : {"libpthread.so.0", "libdl.so.2", "libm.so.6"}) needed.erase(part);
  EXPECT_THAT(needed, ::testing::ElementsAre("libc.so.6"));
}

// Returns the newest version of glibc's symbols that the object needs. "GLIBC_2.17" is {2, 17}.
std::pair<int, int> NewestGlibcOf(const std::string& object) {
  std::pair<int, int> newest{0, 0};
  std::istringstream lines(OutputOf("objdump -T " + object));
  for (std::string line; std::getline(lines, line);) {
    int major = 0, minor = 0;
    const size_t at = line.find("GLIBC_");
    if (at == std::string::npos || std::sscanf(line.c_str() + at, "GLIBC_%d.%d", &major, &minor) != 2)
      continue;
    newest = std::max(newest, {major, minor});
  }
  return newest;
}

// Tests the objects that tools/setup/build_portable.sh builds for CentOS 7 and later.
TEST(PortableObjects, NeedGlibc217AtMostAndNothingElse) {
  for (const char* name : {"/libdynamiccl.so", "/libdynamiccl-audit.so"}) {
    const std::string object = std::string(DYNAMICCL_TEST_PORTABLE) + name;
    if (!std::filesystem::exists(object))
      GTEST_SKIP() << object << " is not there: run tools/setup/build_portable.sh";
    const auto newest = NewestGlibcOf(object);
    EXPECT_GE(newest, std::make_pair(2, 2)) << object;
    EXPECT_LE(newest, std::make_pair(2, 17)) << object;
    std::istringstream lines(OutputOf("readelf -d " + object));
    for (std::string line; std::getline(lines, line);) {
      if (line.find("(NEEDED)") == std::string::npos) continue;
      EXPECT_THAT(line, ::testing::ContainsRegex(
                            "libc\\.so|libpthread\\.so|libdl\\.so|libm\\.so|librt\\.so|ld-linux"));
    }
    // Packages contain the object as it is. Debug information would be most of its size, and contains the
    // path of the build folder.
    EXPECT_THAT(OutputOf("readelf -S " + object), ::testing::Not(::testing::HasSubstr(".debug_"))) << object;
  }
}

TEST(Exports, NamesOfPluginLinkToTheSameObject) {
  const std::string folder =
      std::string(DYNAMICCL_TEST_PRELOAD).substr(0, std::string(DYNAMICCL_TEST_PRELOAD).rfind('/'));
  for (const char* name : {"/libnccl-tuner-dynamiccl.so", "/libnccl-profiler-dynamiccl.so"})
    EXPECT_EQ(OutputOf("readlink " + folder + name), "libdynamiccl.so\n");
}

}  // namespace
}  // namespace dynamiccl
