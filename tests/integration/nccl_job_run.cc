// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/nccl_job_run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#ifndef DYNAMICCL_TEST_AUDIT
#define DYNAMICCL_TEST_AUDIT ""
#endif

namespace dynamiccl::testing {
namespace {

// Variables that could change the job from outside. Its ranks do not inherit them.
const char* const kForgotten[] = {"NCCL_ALGO",       "NCCL_PROTO",      "NCCL_TUNER_PLUGIN",
                                  "NCCL_DEBUG",      "DYNAMICCL_MODE",  "DYNAMICCL_POLICY",
                                  "DYNAMICCL_RULES", "DYNAMICCL_TRACE", "HOSTCCL_TOPOLOGY"};

std::string Filled(std::string value, const std::string& folder) {
  const size_t place = value.find("%d");
  return place == std::string::npos ? value : value.replace(place, 2, folder);
}

void SetAll(const Environment& environment, const std::string& folder) {
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), Filled(value, folder).c_str(), 1);
}

void SendToFile(const std::string& path, int descriptor) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(file, descriptor);
  ::close(file);
}

[[noreturn]] void BecomeRank(const JobOptions& options, int rank, const std::string& folder) {
  for (const char* name : kForgotten) ::unsetenv(name);
  ::setenv("RANK", std::to_string(rank).c_str(), 1);
  ::setenv("WORLD_SIZE", std::to_string(options.n_ranks).c_str(), 1);
  ::setenv("DYNAMICCL_CONTROL_ADDRESS", "127.0.0.1", 1);
  // On a busy machine a rank may be later than the default time-out allows.
  ::setenv("DYNAMICCL_ATTEST_TIMEOUT_MS", "120000", 1);
  SetAll(options.environment, folder);
  const auto own = options.environment_of.find(rank);
  if (own != options.environment_of.end()) SetAll(own->second, folder);
  const auto& without = options.without_preload;
  if (options.preload && std::find(without.begin(), without.end(), rank) == without.end()) {
    const auto other = options.preload_of.find(rank);
    const std::string object = other == options.preload_of.end() ? DYNAMICCL_TEST_PRELOAD : other->second;
    const std::string objects = object + ":" + options.also_preload;
    ::setenv("LD_PRELOAD", objects.c_str(), 1);
  }
  if (options.audit) ::setenv("LD_AUDIT", DYNAMICCL_TEST_AUDIT, 1);
  SendToFile(folder + "/output." + std::to_string(rank), STDERR_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  std::vector<std::string> words = options.under;
  words.insert(words.end(), {DYNAMICCL_TEST_JOB, folder + "/id", options.rounds});
  words.insert(words.end(), options.extras.begin(), options.extras.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::alarm(options.seconds);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

// Returns the exit code, or 128 plus the signal. Ranks that continue without this rank wait for the file.
int AwaitEnd(pid_t pid, size_t rank, const std::string& folder) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  std::ofstream(folder + "/ended." + std::to_string(rank)).flush();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

bool JobResult::ok() const {
  return std::all_of(exit_codes.begin(), exit_codes.end(), [](int code) { return code == 0; });
}

std::string JobResult::AllOutput() const {
  std::string all;
  for (const std::string& text : output) all += text;
  return all;
}

std::string JobResult::Text(const std::string& name) const {
  std::ifstream file(folder + "/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

JobResult RunJob(const JobOptions& options) {
  std::string folder = std::filesystem::temp_directory_path() / "dynamiccl-job-XXXXXX";
  JobResult result;
  result.folder = ::mkdtemp(folder.data());
  const auto start = std::chrono::steady_clock::now();
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < options.n_ranks; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) BecomeRank(options, rank, result.folder);
    ranks.push_back(pid);
  }
  result.exit_codes.resize(ranks.size());
  std::vector<std::thread> watches;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    watches.emplace_back([&, rank] { result.exit_codes[rank] = AwaitEnd(ranks[rank], rank, result.folder); });
  for (std::thread& watch : watches) watch.join();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (int rank = 0; rank < options.n_ranks; ++rank) {
    result.output.push_back(result.Text("output." + std::to_string(rank)));
  }
  return result;
}

std::vector<std::string> LinesWith(const std::string& text, const std::string& what) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.find(what) != std::string::npos) lines.push_back(line);
  }
  return lines;
}

}  // namespace dynamiccl::testing
