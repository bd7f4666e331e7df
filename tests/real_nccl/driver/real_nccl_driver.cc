// SPDX-License-Identifier: Apache-2.0
// Runs a plain NCCL program on all ranks as threads, or on one rank:
//   real_nccl_driver [OPTION VALUE]... IDS NODES RANKS_PER_NODE BYTES...
// IDS is an empty folder that all ranks share for unique ids. RANKS_PER_NODE is one number, or one number for
// each node: "7,8". The options are:
//   --rank R              runs only this rank in this process
//   --program NAME        the calls that the ranks make (programs.h); "collectives" if left out
//   --repeat N            repeats the program's calls
//   --collectives A,B     the collectives to issue, such as AllReduce,AllGather; all five if left out
//   --devices 0,2         the devices of a node's ranks, or of all ranks
//   --node-files FOLDER   runs nodes with different machines, as one process each (node_processes.h)
// Exit codes: 0 all calls succeeded; 2 usage; 3 the stand-in could not redirect NCCL; 4 an NCCL call failed;
// 5 the stand-in lacks a CUDA function; 6 the release lacks a function that the program needs, and nothing
// ran.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <thread>

#include "tests/real_nccl/cuda_standin/cuda_standin.h"
#include "tests/real_nccl/driver/node_processes.h"
#include "tests/real_nccl/driver/programs.h"

namespace {

using real_nccl_driver::FindProgram;
using real_nccl_driver::Program;
using real_nccl_driver::Rank;
using real_nccl_driver::World;

struct Arguments {
  World world;
  const Program* program = FindProgram("collectives");
  std::string node_files;  // empty: all nodes have one machine and run in this process
};

std::vector<std::string> WordsOf(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return words;
}

// Returns false when the option is unknown or its value is invalid.
bool TakeOption(const char* option, const char* value, Arguments* out) {
  if (std::strcmp(option, "--rank") == 0) {
    out->world.only_rank = std::atoi(value);
    return true;
  }
  if (std::strcmp(option, "--repeat") == 0) {
    out->world.repeats = std::strtoull(value, nullptr, 10);
    return out->world.repeats > 0;
  }
  if (std::strcmp(option, "--collectives") == 0) {
    out->world.collectives = WordsOf(value);
    return true;
  }
  if (std::strcmp(option, "--devices") == 0) {
    for (const std::string& word : WordsOf(value)) out->world.devices.push_back(std::atoi(word.c_str()));
    return true;
  }
  if (std::strcmp(option, "--node-files") == 0) {
    out->node_files = value;
    return true;
  }
  if (std::strcmp(option, "--program") != 0) return false;
  out->program = FindProgram(value);
  return out->program != nullptr;
}

// Parses one number for all nodes ("8"), or one number for each node ("7,8").
bool ParseRanks(int nodes, const std::string& text, std::vector<int>* ranks_of_nodes) {
  for (const std::string& word : WordsOf(text)) ranks_of_nodes->push_back(std::atoi(word.c_str()));
  if (nodes < 1 || ranks_of_nodes->empty()) return false;
  if (ranks_of_nodes->size() == 1)
    ranks_of_nodes->assign(static_cast<size_t>(nodes), ranks_of_nodes->front());
  return ranks_of_nodes->size() == static_cast<size_t>(nodes) && std::ranges::min(*ranks_of_nodes) > 0;
}

bool ParseArguments(int count, char** words, Arguments* out) {
  int word = 1;
  for (; word + 1 < count && std::strncmp(words[word], "--", 2) == 0; word += 2) {
    if (!TakeOption(words[word], words[word + 1], out)) return false;
  }
  if (count - word < 4) return false;
  World& world = out->world;
  world.ids = words[word++];
  const int nodes = std::atoi(words[word++]);
  const bool placed = ParseRanks(nodes, words[word++], &world.ranks_of_nodes);
  for (; word < count; ++word) world.bytes.push_back(std::strtoull(words[word], nullptr, 10));
  return placed && world.only_rank < world.ranks();
}

void RunRanks(const World& world, const Program& program) {
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < world.ranks(); ++rank) {
    if (world.only_rank >= 0 && world.only_rank != rank) continue;
    if (world.only_node >= 0 && world.only_node != world.PlaceOf(rank).first) continue;
    ranks.emplace_back([&world, &program, rank] {
      Rank self(world, rank);
      program.run(self);
    });
  }
  for (auto& rank : ranks) rank.join();
}

// Runs the program and returns the process's exit code.
int Run(World& world, const Program& program) {
  real_nccl_driver::Demand(ncclGetVersion(&world.version), 0, "GetVersion");
  if (!world.Has(program.needs)) {
    real_nccl_driver::ReportSkipped(program.name, program.needs, world.version);
    return 6;
  }
  RunRanks(world, program);
  std::printf("done: NCCL %d, %d ranks, %llu launches\n", world.version, world.ranks(),
              static_cast<unsigned long long>(cuda_standin_launches()));
  return cuda_standin_missing_calls() == 0 ? 0 : 5;
}

}  // namespace

int main(int count, char** words) {
  Arguments arguments;
  if (!ParseArguments(count, words, &arguments)) {
    std::fprintf(
        stderr,
        "usage: real_nccl_driver [--rank R] [--program NAME] [--repeat N] [--collectives NAME,...] "
        "[--devices D,...] [--node-files FOLDER] IDS NODES RANKS_PER_NODE BYTES...\n  programs: %s\n",
        real_nccl_driver::ProgramNames().c_str());
    return 2;
  }
  if (cuda_standin_redirected == nullptr || cuda_standin_redirected() <= 0) {
    std::fprintf(stderr,
                 "real_nccl_driver: the CUDA stand-in is not preloaded, or NCCL's library is stripped\n");
    return 3;
  }
  World& world = arguments.world;
  const Program& program = *arguments.program;
  if (arguments.node_files.empty()) return Run(world, program);
  // Several processes write to one stream, so each line is written whole.
  setvbuf(stdout, nullptr, _IOLBF, 0);
  return real_nccl_driver::RunNodeProcesses(world.nodes(), arguments.node_files, [&](int node) {
    world.only_node = node;
    return Run(world, program);
  });
}
