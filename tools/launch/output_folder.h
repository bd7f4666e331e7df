// SPDX-License-Identifier: Apache-2.0
// The folder into which a command writes what it finds while it starts a job again and again.
#pragma once

#include <string>

#include "src/base/own_file.h"

namespace dynamiccl {

// Creates the folder and claims it for as long as the result lives. Meanwhile tune, pilot and demo fail to
// claim it in other processes, with kUnavailable. A process that is killed leaves nothing locked.
Result<OwnFile> ClaimOutputFolder(const std::string& folder);

// Renames the file at `path`, if there is one, so that a job's output begins in a new file: "job.log" becomes
// "job.earlier.log", which it replaces.
void BeginLog(const std::string& path);

// Says where the output of a job that failed is, and quotes its last line of text: "its output is in
// tune/job.log and ends with: KeyError: 'x'".
std::string OutputHint(const std::string& path);

}  // namespace dynamiccl
