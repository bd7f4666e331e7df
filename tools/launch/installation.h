// SPDX-License-Identifier: Apache-2.0
// Finds the shared objects, programs and data files of this build or installation.
#pragma once

#include <filesystem>
#include <string>

#include "src/base/status.h"

namespace dynamiccl {

// Paths of what one build tree or installation holds. Both have the same shape: HOME/bin and HOME/lib (or
// HOME/<libdir of the platform>). A path is empty when its file does not exist, since a build may lack parts;
// the user of a path checks it and names the missing part.
struct Installation {
  std::string home;
  // The runtime, libdynamiccl.so.
  std::string preload;
  std::string hostccl_dir;  // folder with hostccl's libnccl.so.2
  // The tuner plugin of sweeps, libnccl-tuner-sweep.so.
  std::string sweep_tuner;
  // Folder with the programs that run a release of NCCL without a GPU (tests/real_nccl), for `dynamiccl
  // canary`.
  std::string real_nccl_dir;
  // Folder whose sitecustomize.py applies settings to PyTorch when Python starts.
  std::string startup_dir;
  std::string kernels;  // dynamiccl_kernels.fatbin, which a GPU's checks and loads need
  std::string dynamiccl;
  // The program dynamiccl-agents, which needs LibTorch.
  std::string agents;
  // The program dynamiccl-zero, which needs LibTorch.
  std::string zero;
};

// Inspects the installation in `home`. Where `home` is empty, DYNAMICCL_HOME counts, and without it the
// folder above the running program's. A folder that was named but holds nothing of DynamICCL is an error
// (kNotFound).
Result<Installation> FindInstallation(const std::string& home = {});

// Returns how the running program came to this machine: "a wheel, by pip", "the DEB", "a build folder".
// DYNAMICCL_HOME does not count.
std::string InstalledAs();

// Returns a hint for a message: how a user whose installation lacks dynamiccl-agents or dynamiccl-zero gets
// them.
const char* HowToGetTorchPrograms();

// Path of the data file `relative` in HOME/share/dynamiccl, else in the source tree from which this program
// was built. Empty when neither has it.
std::string FindDataFile(const Installation& installation, const std::string& relative);

// The word that stands for the shipped policy wherever a policy file is expected. Jobs accept the same word
// (plugin/runtime/job_settings.cc). A file of that name in the working folder is given as "./starter".
inline constexpr const char* kStarterWord = "starter";
// The policy file that `word` names: the shipped one for kStarterWord, else `word` unchanged. It is an error
// when the installation has no shipped policy.
Result<std::string> PolicyFileOf(const Installation& installation, const std::string& word);

// The shipped policy of the installation that this program belongs to; empty without one.
std::string ShippedPolicy();

// Folder in which the scripts of tools/setup keep the files that they fetched for this user:
// $XDG_CACHE_HOME/dynamiccl, or ~/.cache/dynamiccl where the variable is not set. It need not exist.
std::filesystem::path CacheFolder();

}  // namespace dynamiccl
