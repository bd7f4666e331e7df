// SPDX-License-Identifier: Apache-2.0
// Compares the table of NCCL's functions with NVIDIA's own nccl.h of every release that
// tools/setup/fetch_nccl.sh has put into the cache. No function may be missing or declared differently, and
// each must have come in the release that the table states. The headers are read as text, because a program
// can include only one nccl.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "src/nccl_abi/nccl_function_list.h"

namespace dynamiccl {
namespace {

constexpr int kOldest = 21801;  // The table does not state when older functions came.

struct Declared {
  int since = 0;
  std::string result;
  std::string parameters;  // Only types, without spaces, separated by ','.
};

std::string WithoutSpaces(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isspace(c) != 0; });
  return text;
}

// Returns "constvoid*" for "const void* sendbuff". If there are two or more words, the last one is a name.
std::string TypeOf(const std::string& parameter) {
  static const std::regex kNamed(
      R"(^\s*((?:const\s+)?\w+(?:\s+(?:int|const))?\s*(?:\*\s*(?:const)?\s*)*)\s*(\w+)?\s*$)");
  std::smatch match;
  if (!std::regex_match(parameter, match, kNamed)) return "?" + parameter;
  return WithoutSpaces(match[1]);
}

std::string TypesOf(std::string parameters) {
  std::string types;
  std::istringstream each(parameters);
  for (std::string parameter; std::getline(each, parameter, ',');) {
    types += (types.empty() ? "" : ",") + TypeOf(parameter);
  }
  // Release 2.30.4 names the structure, and later releases name a pointer to it.
  types = std::regex_replace(types, std::regex(R"(ncclParamHandle_t\*+)"), "ncclParamHandle_t");
  return types == "void" ? "" : types;
}

std::map<std::string, Declared> OwnTable() {
  std::map<std::string, Declared> table;
#define DYNAMICCL_DECLARED(since, door, result, name, parameters, arguments)                    \
  {                                                                                             \
    const std::string inner = #parameters;                                                      \
    table[#name] = {since, WithoutSpaces(#result), TypesOf(inner.substr(1, inner.size() - 2))}; \
  }
  DYNAMICCL_NCCL_FUNCTIONS(DYNAMICCL_DECLARED)
  DYNAMICCL_NCCL_FURTHER_FUNCTIONS(DYNAMICCL_DECLARED)
#undef DYNAMICCL_DECLARED
  return table;
}

std::map<std::string, Declared> HeaderTable(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  // Removes comments, because the pattern below does not know them.
  text = std::regex_replace(text, std::regex(R"(//[^\n]*|/\*([^*]|\*(?!/))*\*/)"), " ");
  static const std::regex kFunction(
      R"((ncclResult_t|const\s+char\s*\*|void)\s+nccl(\w+)\s*\(([^()]*)\)\s*;)");
  std::map<std::string, Declared> table;
  for (std::sregex_iterator at(text.begin(), text.end(), kFunction), end; at != end; ++at) {
    table[(*at)[2]] = {0, WithoutSpaces((*at)[1]), TypesOf((*at)[3])};
  }
  return table;
}

std::filesystem::path Wheels() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const std::filesystem::path base = cache != nullptr && *cache != '\0'
                                         ? cache
                                         : std::filesystem::path(home == nullptr ? "/" : home) / ".cache";
  return base / "dynamiccl" / "wheels";
}

// Returns the headers by release number: 22809 for 2.28.9.
std::map<int, std::filesystem::path> Headers() {
  std::map<int, std::filesystem::path> headers;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(Wheels(), error)) {
    int major = 0, minor = 0, patch = 0;
    const std::string name = entry.path().filename();
    if (std::sscanf(name.c_str(), "nccl-%d.%d.%d", &major, &minor, &patch) != 3) continue;
    const auto header = entry.path() / "nvidia/nccl/include/nccl.h";
    if (std::filesystem::exists(header)) headers[major * 10000 + minor * 100 + patch] = header;
  }
  return headers;
}

std::vector<std::string> Differences(int release, const std::map<std::string, Declared>& own,
                                     const std::map<std::string, Declared>& header) {
  std::vector<std::string> lines;
  for (const auto& [name, declared] : header) {
    const auto found = own.find(name);
    if (found == own.end()) {
      lines.push_back("not in the table: nccl" + name);
      continue;
    }
    if (found->second.since > release) lines.push_back("there already: nccl" + name);
    if (found->second.result != declared.result || found->second.parameters != declared.parameters)
      lines.push_back("nccl" + name + "(" + declared.parameters + ") is (" + found->second.parameters +
                      ") here");
  }
  for (const auto& [name, declared] : own) {
    if (declared.since <= release && !header.contains(name)) lines.push_back("not there yet: nccl" + name);
  }
  return lines;
}

TEST(ReleaseHeaders, DeclareWhatTheTableSays) {
  const auto headers = Headers();
  if (headers.empty()) {
    GTEST_SKIP() << "no nccl.h of NVIDIA's in " << Wheels()
                 << ": run tools/setup/fetch_nccl.sh 2.32.3 (and any release from 2.18 on)";
  }
  const auto own = OwnTable();
  ASSERT_GT(own.size(), 60u);
  for (const auto& [release, path] : headers) {
    if (release < kOldest) continue;
    const auto header = HeaderTable(path);
    EXPECT_GT(header.size(), 25u) << path;
    std::string text;
    for (const std::string& line : Differences(release, own, header)) text += "  " + line + "\n";
    EXPECT_EQ(text, "") << path;
    std::printf("release %d: %zu functions\n", release, header.size());
  }
}

// The comparison must detect wrong declarations.
TEST(ReleaseHeaders, AWrongDeclarationIsSeen) {
  auto header = OwnTable();
  header["AllReduce"].parameters += ",int";
  header["Broadcast"].result = "void";
  header["NewThing"] = {};
  header.erase("Reduce");
  const std::vector<std::string> lines = Differences(99999, OwnTable(), header);
  EXPECT_EQ(lines.size(), 4u);
}

}  // namespace
}  // namespace dynamiccl
