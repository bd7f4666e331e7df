// SPDX-License-Identifier: Apache-2.0
// The program dynamiccl-lab: studies for the pages of docs/results. It is not installed.
#include <string>
#include <vector>

#include "studies/lab_commands.h"
#include "tools/console_log.h"

namespace {

constexpr const char* kProgram = "dynamiccl-lab";

constexpr dynamiccl::CommandRow kCommands[] = {
    {{"headroom",
      "Say what measured times leave to win over the library's own choice, and what each field of the key "
      "adds",
      "dynamiccl-lab headroom sweep.measurements\n"
      "dynamiccl-lab headroom nccl_tests_unified.csv.gz --json\n"
      "dynamiccl-lab headroom sweep.measurements --trace run.ctrace",
      kProgram},
     dynamiccl::HeadroomCommand},
    {{"clusters", "Make sweeps of randomised clusters around measured systems, to train on",
      "dynamiccl-lab clusters nccl_tests_unified.csv.gz -o clusters.measurements --count 48 --seed 1\n"
      "dynamiccl-lab clusters sweep.measurements --spread 0.5 -o far.measurements\n"
      "dynamiccl-lab clusters mn5.csv --published mn5 -o mn5.measurements",
      kProgram},
     dynamiccl::ClustersCommand},
    {{"compare", "Say whether two sweeps order the configs alike, and where not",
      "dynamiccl-lab compare here.measurements there.measurements --topology one-node=one-node\n"
      "dynamiccl-lab compare here.measurements there.measurements --topology a=b --size-scale 0.1\n"
      "dynamiccl-lab compare here.measurements there.measurements --topology a=b --tie 0.1 --json",
      kProgram},
     dynamiccl::CompareCommand},
    {{"held-out", "Say how far fits of a system are off on rank counts and sizes left out of them",
      "dynamiccl-lab held-out nccl_tests_unified.csv.gz\n"
      "dynamiccl-lab held-out sweep.measurements --system one-node\n"
      "dynamiccl-lab held-out times.csv.gz --json",
      kProgram},
     dynamiccl::HeldOutCommand},
    {{"tradeoffs", "Measure each choice of the ZeRO trainer's design against its alternative",
      "dynamiccl-lab tradeoffs -n 2 --data corpus.txt\n"
      "dynamiccl-lab tradeoffs -n 4 --layers 6 --hidden 256 --heads 8\n"
      "dynamiccl-lab tradeoffs -n 2 --rounds 9 --json tradeoffs.json",
      kProgram},
     dynamiccl::TradeoffsCommand},
    {{"capped", "Find the largest model that each ZeRO stage trains under a cap of memory a rank",
      "dynamiccl-lab capped --memory 32M -n 2 --data corpus.txt\n"
      "dynamiccl-lab capped --memory 16M -n 4 --steps 300\n"
      "dynamiccl-lab capped --memory 32M --json capped.json",
      kProgram},
     dynamiccl::CappedCommand},
    {{"zero-paper", "Simulate the ZeRO paper's figures, beside what is printed in it",
      "dynamiccl-lab zero-paper all\n"
      "dynamiccl-lab zero-paper fig6\n"
      "dynamiccl-lab zero-paper fig3 --system dgx-a100 --accelerator a100 --json",
      kProgram},
     dynamiccl::ZeroPaperCommand},
    {{"hostccl-calibration", "Constants of hostccl's default choice from sweeps, and the map of the best one",
      "dynamiccl-lab hostccl-calibration two-point calibration.measurements\n"
      "dynamiccl-lab hostccl-calibration map map.measurements --constants fitted.measurements\n"
      "dynamiccl-lab hostccl-calibration rules map.measurements --topology two-nodes-ethernet -o "
      "calibrated.csv",
      kProgram},
     dynamiccl::HostcclCalibrationCommand},
};

constexpr dynamiccl::CommandProgram kLab{
    kProgram, "studies of what there is to win, and of the simulator and the trainer.",
    "dynamiccl-lab headroom sweep.measurements\n"
    "dynamiccl-lab zero-paper all\n"
    "dynamiccl-lab tradeoffs -n 2",
    kCommands};

}  // namespace

int main(int argc, char** argv) {
  dynamiccl::StartConsoleLog();
  return dynamiccl::RunCommandProgram(kLab, std::vector<std::string>(argv + 1, argv + argc));
}
