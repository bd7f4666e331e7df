// SPDX-License-Identifier: Apache-2.0
// Runs one case by command: what a release of NCCL chooses on a machine, with the user's own variables.
//   real_nccl_case RELEASE MACHINE NODESxRANKS [--program=NAME] [BYTES | NAME=VALUE]...
// MACHINE is a name of machines/ or the path of such a file. BYTES are the sizes of the five collectives.
// Without BYTES they are 1 KiB, 1 MiB and 256 MiB. --program names another program of the driver than
// `collectives`. NAME=VALUE goes into the job's environment, which holds nothing of the caller's. Values of
// LD_PRELOAD and LD_LIBRARY_PATH are appended to the harness's own. The command prints one line for each
// call, and the path of NCCL's whole log. Exit codes: 0 all calls succeeded; 1 the run failed, and a message
// says how; 2 usage; 3 the release was not fetched.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "tests/real_nccl/choices.h"
#include "tests/real_nccl/real_nccl_run.h"

namespace {

using namespace dynamiccl::real_nccl;

constexpr const char* kUsage =
    "usage: real_nccl_case RELEASE MACHINE NODESxRANKS [--program=NAME] [BYTES | NAME=VALUE]...\n"
    "  e.g. real_nccl_case 2.28.9 dgx_h100 2x8 1048576 NCCL_ALGO=Ring\n";

bool ParseWorld(const char* word, RunRequest* request) {
  int end = 0;
  return std::sscanf(word, "%dx%d%n", &request->nodes, &request->ranks_per_node, &end) == 2 &&
         word[end] == '\0' && request->nodes > 0 && request->ranks_per_node > 0;
}

// Parses --program=NAME, BYTES or NAME=VALUE.
bool ParseWord(const std::string& word, RunRequest* request) {
  constexpr std::string_view kProgram = "--program=";
  if (word.starts_with(kProgram)) {
    request->program = word.substr(kProgram.size());
    return !request->program.empty();
  }
  const size_t equals = word.find('=');
  if (equals != std::string::npos) {
    request->environment[word.substr(0, equals)] = word.substr(equals + 1);
    return equals > 0;
  }
  char* end = nullptr;
  request->bytes.push_back(std::strtoull(word.c_str(), &end, 10));
  return *end == '\0' && request->bytes.back() > 0;
}

std::optional<RunRequest> ParseRequest(int count, char** words) {
  RunRequest request;
  const auto release = count < 4 ? std::nullopt : ParseRelease(words[1]);
  if (!release || !ParseWorld(words[3], &request)) return std::nullopt;
  request.release = *release;
  request.machine = words[2];
  for (int word = 4; word < count; ++word) {
    if (!ParseWord(words[word], &request)) return std::nullopt;
  }
  if (request.bytes.empty()) request.bytes = {1024, 1 << 20, 256 << 20};
  request.limit_s = 600;  // 128 ranks need half a minute to initialise
  return request;
}

// Returns the text of the line of NCCL's log that says how many channels there are.
std::string ChannelsLine(const std::string& output) {
  const size_t text = output.find(" coll channels");
  if (text == std::string::npos) return "";
  const size_t begin = output.rfind("NCCL INFO ", text) + 10;
  return output.substr(begin, output.find('\n', begin) - begin);
}

int Report(const RunRequest& request, const RunOutcome& outcome) {
  const std::string log = request.scratch_folder + "/log";
  std::ofstream(log) << outcome.output;
  std::string error;
  const auto choices = ChoicesOf(outcome.output, request.release, request.ranks(), &error);
  std::cout << "NCCL " << request.release.text() << ", " << request.machine << ", " << request.nodes << "x"
            << request.ranks_per_node << ": " << ChannelsLine(outcome.output) << "\n";
  if (choices && outcome.exit_code == 0) {
    for (const Choice& choice : *choices) std::cout << choice << " channels\n";
  } else {
    const size_t tail = std::min<size_t>(outcome.output.size(), 1500);
    std::cerr << outcome.output.substr(outcome.output.size() - tail)
              << "\nreal_nccl_case: the driver ended with " << outcome.exit_code
              << (error.empty() ? "" : ", " + error)
              << "; its exit codes are explained in driver/real_nccl_driver.cc\n";
  }
  std::cout << "log: " << log << "\n";
  return choices && outcome.exit_code == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  auto request = ParseRequest(count, words);
  if (!request) {
    std::cerr << kUsage;
    return 2;
  }
  if (!std::filesystem::exists(MachineFile(*request))) {
    std::cerr << "real_nccl_case: there is no " << MachineFile(*request) << "\n" << kUsage;
    return 2;
  }
  const std::string why_not = WhyNotRunnable(request->release);
  if (!why_not.empty()) {
    std::cerr << "real_nccl_case: " << why_not << "\n";
    return WhyNotFetched(request->release).empty() ? 1 : 3;
  }
  const auto folder = std::filesystem::temp_directory_path() / ("real_nccl_case_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  request->scratch_folder = folder;
  return Report(*request, RunDriver(*request));
}
