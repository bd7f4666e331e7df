// SPDX-License-Identifier: Apache-2.0
// Looks for choices that the user pinned in the environment or in NCCL's configuration files. What a user
// pinned wins over every policy, so each pin is a warning and none is a failure:
//
//   WARN  NCCL_ALGO  Ring
//                    -> the algorithm is pinned: a policy is asked only for the rest; unset it to change that
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tools/doctor/check.h"

namespace dynamiccl {
namespace {

// A variable of NCCL, and what it means for a policy if the variable is set.
struct Pin {
  const char* variable;
  const char* effect;
};

// The runtime leaves every pinned choice to the user, so doctor names each of them.
constexpr Pin kPins[] = {
    {"NCCL_ALGO", "the algorithm is pinned: a policy is asked only for the rest"},
    {"NCCL_PROTO", "the protocol is pinned: a policy is asked only for the rest"},
    {"NCCL_MIN_NCHANNELS", "the number of channels is pinned from below"},
    {"NCCL_MAX_NCHANNELS", "the number of channels is pinned from above"},
    {"NCCL_NCHANNELS_PER_NET_PEER", "channels per network peer are pinned"},
    {"NCCL_TUNER_PLUGIN", "another tuner is named: it is asked first, and DynamICCL chains to it"},
    {"NCCL_PROFILER_PLUGIN", "another profiler is named"},
    {"NCCL_TUNER_CONFIG_FILE", "a tuner's own rules are named"},
};

// Returns a warning for each pinned variable of this environment. An empty value counts as set.
std::vector<Finding> CheckPins() {
  std::vector<Finding> findings;
  for (const Pin& pin : kPins) {
    const char* value = std::getenv(pin.variable);
    if (value == nullptr) continue;
    findings.push_back(
        {pin.variable, value, Verdict::kWarn, fmt::format("{}; unset it to change that", pin.effect)});
  }
  return findings;
}

// The configuration files that NCCL reads. NCCL_CONF_FILE replaces the one in the home folder.
std::vector<std::string> ConfFiles() {
  std::vector<std::string> files{"/etc/nccl.conf"};
  if (const char* named = std::getenv("NCCL_CONF_FILE"))
    files.emplace_back(named);
  else if (const char* home = std::getenv("HOME"))
    files.push_back(std::string(home) + "/.nccl.conf");
  return files;
}

// Returns a warning for each line of NCCL's configuration files that pins a choice of a tuner. The warning
// names the file and the line.
std::vector<Finding> CheckConfFiles() {
  std::vector<Finding> findings;
  for (const std::string& file : ConfFiles()) {
    std::ifstream lines(file);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      for (const Pin& pin : kPins) {
        if (!line.starts_with(std::string(pin.variable) + "=")) continue;
        findings.push_back({fmt::format("{} line {}", file, number), line, Verdict::kWarn, pin.effect});
      }
    }
  }
  return findings;
}

}  // namespace

std::vector<Finding> CheckConflicts() {
  std::vector<Finding> findings;
  for (const auto& group : {CheckPins(), CheckConfFiles()}) {
    findings.insert(findings.end(), group.begin(), group.end());
  }
  if (findings.empty()) findings.push_back({"Conflicts", "none", Verdict::kOk, ""});
  return findings;
}

std::vector<Finding> Examine(const Installation& installation) {
  std::vector<Finding> findings = CheckInstallation(installation);
  for (const auto& group : {CheckNccl(installation), CheckMachine(), CheckConflicts(), CheckSettings()}) {
    findings.insert(findings.end(), group.begin(), group.end());
  }
  return findings;
}

const char* Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "OK";
    case Verdict::kWarn:
      return "WARN";
    case Verdict::kFail:
      return "FAIL";
  }
  return "";
}

}  // namespace dynamiccl
