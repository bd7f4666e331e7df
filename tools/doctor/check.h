// SPDX-License-Identifier: Apache-2.0
// One finding of `dynamiccl doctor`, and the groups of checks that make them. No check changes anything.
#pragma once

#include <string>
#include <vector>

#include "src/base/settings.h"
#include "tools/launch/installation.h"

namespace dynamiccl {

enum class Verdict { kOk, kWarn, kFail };

struct Finding {
  std::string subject;  // "NCCL", "/dev/shm"
  std::string value;    // what was found
  Verdict verdict = Verdict::kOk;
  std::string advice;  // what to do; empty when all is well
};

const char* Name(Verdict verdict);

// The parts of this build and who may change them: an object that others may write is one that others may run
// as you.
std::vector<Finding> CheckInstallation(const Installation& installation);
// Copies of NCCL that a program could load, with their versions.
std::vector<Finding> CheckNccl(const Installation& installation);
// Cores, GPU, shared memory, what processes may do to each other, launchers.
std::vector<Finding> CheckMachine();
// Variables and files that take the choice away from a tuner, and names that look like typos of ours.
std::vector<Finding> CheckConflicts();

// Values of the variables that are set, and the files that they name.
std::vector<Finding> CheckSettings();

// What a file of ours holds, or what is wrong with it; its kind is told by its name.
Finding CheckFile(const std::string& path);
// Likewise of the file that a setting names.
Finding CheckFileOf(Setting setting, const std::string& path);

// All groups of checks, in the order above.
std::vector<Finding> Examine(const Installation& installation);

}  // namespace dynamiccl
