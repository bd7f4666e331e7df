// SPDX-License-Identifier: Apache-2.0
// Checks existence, readability and ownership of each part of the installation. Whoever may write the
// preloaded object runs code in every job that loads it: an object that everybody may write is therefore a
// failure, and one of another user a warning. Only the file itself is looked at, not the folders above it.
#include <sys/stat.h>
#include <unistd.h>

#include "tools/doctor/check.h"
#include "tools/version.h"

namespace dynamiccl {
namespace {

// A part of the installation to check. `when_absent` is the verdict if the build lacks the part; `advice`
// says how to get the part.
struct Part {
  const char* subject;
  std::string path;
  Verdict when_absent;
  const char* advice;
};

// Reports the first fault of a part, in this order: absent from the build, not readable, writable by
// everybody, owned by another user than root and the caller.
Finding CheckPart(const Part& part) {
  if (part.path.empty()) return {part.subject, "not in this build", part.when_absent, part.advice};
  struct stat info {};
  if (::stat(part.path.c_str(), &info) != 0 || ::access(part.path.c_str(), R_OK) != 0) {
    return {part.subject, part.path, Verdict::kFail, "make it readable: chmod a+r " + part.path};
  }
  if ((info.st_mode & S_IWOTH) != 0) {
    return {part.subject, part.path + " may be written by everybody", Verdict::kFail,
            "chmod o-w " + part.path};
  }
  if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
    return {part.subject, part.path + " belongs to another user", Verdict::kWarn,
            "load only objects of users you trust"};
  }
  return {part.subject, part.path, Verdict::kOk, ""};
}

}  // namespace

std::vector<Finding> CheckInstallation(const Installation& installation) {
  constexpr const char* kBuildAll = "build all targets: cmake --build <build folder>";
  const std::string hostccl =
      installation.hostccl_dir.empty() ? std::string() : installation.hostccl_dir + "/libnccl.so.2";
  std::vector<Finding> findings{
      {"Installed", std::string(kVersion) + " as " + InstalledAs(), Verdict::kOk, ""}};
  for (const Part& part : {Part{"Object", installation.preload, Verdict::kFail, kBuildAll},
                           Part{"hostccl", hostccl, Verdict::kFail, kBuildAll},
                           Part{"Agents", installation.agents, Verdict::kWarn, HowToGetTorchPrograms()},
                           Part{"Trainer", installation.zero, Verdict::kWarn, HowToGetTorchPrograms()}}) {
    findings.push_back(CheckPart(part));
  }
  return findings;
}

}  // namespace dynamiccl
