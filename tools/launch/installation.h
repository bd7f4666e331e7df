// SPDX-License-Identifier: Apache-2.0
// Where the objects and programs of this build or installation are.
#pragma once

#include <filesystem>
#include <string>

#include "src/base/status.h"

namespace dynamiccl {

// Build tree and installation have the same shape, HOME/bin and HOME/lib (or HOME/<libdir of the platform>).
// A path is empty when the file does not exist: a build may lack parts.
struct Installation {
  std::string home;
  std::string preload;      // libdynamiccl.so
  std::string hostccl_dir;  // folder with hostccl's libnccl.so.2
  std::string sweep_tuner;  // libnccl-tuner-sweep.so
  std::string kernels;      // dynamiccl_kernels.fatbin, which a GPU's checks and loads need
  std::string dynamiccl;
  std::string agents;  // dynamiccl-agents
  std::string zero;    // dynamiccl-zero
};

// `home` wins over DYNAMICCL_HOME, which wins over the folder above that of the running program. An explicit
// home in which nothing of ours lies is an error.
Result<Installation> FindInstallation(const std::string& home = {});

// Folder with the program's data in the source tree or the installation (share/dynamiccl), empty when there
// is none.
std::string FindDataFile(const Installation& installation, const std::string& relative);

// The word that stands for the policy that is shipped, wherever a policy file is named; a file of that name
// in the working folder is "./starter". As jobs take it (plugin/runtime/job_settings.cc).
inline constexpr const char* kStarterWord = "starter";
// The file that `word` names: itself, or the policy of the installation. An error where the word is given and
// the installation has none.
Result<std::string> PolicyFileOf(const Installation& installation, const std::string& word);

// Where the scripts of tools/setup keep what they fetched for this user.

// dynamiccl in $XDG_CACHE_HOME, or in ~/.cache where that is not set. Need not exist.
std::filesystem::path CacheFolder();

}  // namespace dynamiccl
