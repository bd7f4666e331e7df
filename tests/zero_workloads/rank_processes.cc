// SPDX-License-Identifier: Apache-2.0
#include "tests/zero_workloads/rank_processes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <utility>

#include "tests/zero_workloads/rank_server.h"

namespace dynamiccl::zero {
namespace {

namespace fs = std::filesystem;

std::string ReadText(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Starts the program as a new process. Throws std::system_error if the system cannot start one.
pid_t StartFresh(std::vector<std::string> words, const std::map<std::string, std::string>& environment,
                 const std::string& output, int timeout_seconds) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t process = fork();
  if (process < 0) throw std::system_error(errno, std::system_category(), "cannot fork a rank");
  if (process > 0) return process;
  alarm(static_cast<unsigned>(timeout_seconds));
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  const int fd = open(output.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  dup2(fd, STDOUT_FILENO);
  dup2(fd, STDERR_FILENO);
  execv(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "dynamiccl_zero_XXXXXX").string();
  path_ = mkdtemp(pattern.data());
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

RankProcesses::RankProcesses(const Launch& launch) {
  for (int rank = 0; rank < launch.ranks; ++rank) Start(launch, rank);
}

void RankProcesses::Start(const Launch& launch, int rank) {
  std::map<std::string, std::string> environment = launch.environment;
  const auto own = launch.rank_environment.find(rank);
  if (own != launch.rank_environment.end()) environment.insert(own->second.begin(), own->second.end());
  if (launch.ranks > 1) {
    environment.merge(std::map<std::string, std::string>{{"RANK", std::to_string(rank)},
                                                         {"WORLD_SIZE", std::to_string(launch.ranks)},
                                                         {"LOCAL_RANK", std::to_string(rank)},
                                                         {"MASTER_ADDR", "127.0.0.1"},
                                                         {"MASTER_PORT", std::to_string(port_.number())}});
  }
  std::vector<std::string> words = {DYNAMICCL_ZERO_PROGRAM};
  words.insert(words.end(), launch.arguments.begin(), launch.arguments.end());
  const std::string output = OutputPath(rank).string();
  // LD_PRELOAD takes effect only when a program is loaded, so such a rank is not a fork of a server.
  const bool fresh = environment.contains("LD_PRELOAD");
  processes_.push_back(
      fresh ? StartFresh(words, environment, output, launch.timeout_seconds)
            : RankServer::With(launch.preload).Start(words, environment, output, launch.timeout_seconds));
}

RankProcesses::~RankProcesses() {
  for (const pid_t process : processes_) {
    if (process == 0) continue;
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
}

void RankProcesses::Kill(int rank, int signal) {
  const pid_t process = processes_[static_cast<size_t>(rank)];
  ASSERT_GT(process, 0) << "rank " << rank << " was waited for";
  ASSERT_EQ(kill(process, signal), 0) << "rank " << rank;
}

std::vector<RankOutcome> RankProcesses::Wait() {
  std::vector<RankOutcome> outcomes;
  for (size_t rank = 0; rank < processes_.size(); ++rank) {
    int status = 0;
    EXPECT_GT(waitpid(std::exchange(processes_[rank], 0), &status, 0), 0);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    outcomes.push_back({code, ReadText(OutputPath(static_cast<int>(rank)))});
  }
  return outcomes;
}

std::vector<RankOutcome> RunRanks(const Launch& launch) {
  return RankProcesses(launch).Wait();
}

namespace {

MemoryReport MemoryFrom(const nlohmann::json& json) {
  MemoryReport memory;
  for (const auto& [name, value] : json.items()) {
    if (name == "activations_kept") {
      memory.activations_kept = value;
    } else {
      memory.current[name] = value["current"];
      memory.peak[name] = value["peak"];
    }
  }
  return memory;
}

}  // namespace

TrainingReport ReadReport(const fs::path& json) {
  TrainingReport report;
  std::ifstream file(json);
  for (std::string text; std::getline(file, text);) {
    const nlohmann::json line = nlohmann::json::parse(text);
    if (line.contains("step")) {
      report.losses.push_back(line["loss_hex"]);
      report.bits_per_byte.push_back(line["bits_per_byte"]);
      report.loss_scales.push_back(line["loss_scale"]);
      report.step_ms.push_back(line["step_ms"]);
      report.comm_wait_ms.push_back(line["comm_wait_ms"]);
      if (line.contains("live")) {
        report.live_bucket_bytes.push_back(line["live"]["bucket_bytes"]);
        report.live_prefetch.push_back(line["live"]["prefetch"]);
      }
      report.skipped_steps += line.value("skipped", false) ? 1 : 0;
    }
    if (line.contains("parameters_sha256")) report.parameters_sha256 = line["parameters_sha256"];
    if (line.contains("memory")) report.memory = MemoryFrom(line["memory"]);
    if (line.contains("host_memory"))
      report.host_memory = line["host_memory"].get<std::map<std::string, int64_t>>();
    if (line.contains("held_out_bits_per_byte"))
      report.held_out_bits_per_byte = line["held_out_bits_per_byte"];
  }
  return report;
}

std::vector<std::string> SmallModel() {
  // 12 sequences can be divided by every world size that the tests use.
  return {"train",
          "--data",
          DYNAMICCL_TEST_TEXT,
          "--layers",
          "2",
          "--hidden",
          "64",
          "--heads",
          "2",
          "--sequence",
          "32",
          "--batch",
          "12",
          "--steps",
          "30",
          "--bucket-bytes",
          "64K",
          "--learning-rate",
          "3e-3"};
}

TrainingReport TrainSmall(int ranks, const std::vector<std::string>& arguments,
                          const std::map<std::string, std::string>& environment, const std::string& preload) {
  const TemporaryFolder folder;
  Launch launch{.ranks = ranks, .arguments = SmallModel(), .environment = environment, .preload = preload};
  // The program refuses an option that is given twice, so a later value replaces the model's own.
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto old = std::find(launch.arguments.begin(), launch.arguments.end(), arguments[i]);
    if (old != launch.arguments.end() && arguments[i].starts_with("--")) {
      *(old + 1) = arguments[++i];
    } else {
      launch.arguments.push_back(arguments[i]);
    }
  }
  const fs::path json = folder / "report.json";
  launch.arguments.insert(launch.arguments.end(), {"--json", json.string()});
  for (const RankOutcome& rank : RunRanks(launch)) EXPECT_EQ(rank.exit_code, 0) << rank.output;
  return ReadReport(json);
}

}  // namespace dynamiccl::zero
