// SPDX-License-Identifier: Apache-2.0
// The findings of `dynamiccl doctor` and the groups of checks that make them. Checks only read: none changes
// anything.
#pragma once

#include <string>
#include <vector>

#include "src/base/settings.h"
#include "tools/launch/installation.h"

namespace dynamiccl {

// kFail makes doctor's answer "no" (exit code 1); kWarn does not.
enum class Verdict { kOk, kWarn, kFail };

// One line of doctor's output.
struct Finding {
  // The thing that was checked: "NCCL", "/dev/shm".
  std::string subject;
  // The finding itself.
  std::string value;
  Verdict verdict = Verdict::kOk;
  // The remedy; empty when all is well.
  std::string advice;
};

// "OK", "WARN" or "FAIL".
const char* Name(Verdict verdict);

// Checks that the parts of this build exist, and who may change them: whoever can write a loaded object can
// run code as the user who loads it.
std::vector<Finding> CheckInstallation(const Installation& installation);
// Lists the copies of NCCL that a program could load, with their versions.
std::vector<Finding> CheckNccl(const Installation& installation);
// Checks the cores, the GPU, shared memory, whether a debugger may attach to processes, and which launchers
// are installed.
std::vector<Finding> CheckMachine();
// Finds variables and files that take the choice away from a tuner.
std::vector<Finding> CheckConflicts();

// Checks the variables of DynamICCL: names that look like typos, wrong values, and the files that the
// variables name.
std::vector<Finding> CheckSettings();

// Says what a file of DynamICCL contains, or what is wrong with the file. The end of the file's name tells
// its kind.
Finding CheckFile(const std::string& path);
// Checks the file that a setting names; the setting tells which kind of file it must be.
Finding CheckFileOf(Setting setting, const std::string& path);

// Runs all groups of checks, in the order in which this file declares them.
std::vector<Finding> Examine(const Installation& installation);

}  // namespace dynamiccl
