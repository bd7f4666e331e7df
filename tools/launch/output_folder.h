// SPDX-License-Identifier: Apache-2.0
// The folder into which a command writes what it finds while it starts a job again and again.
#pragma once

#include <string>

#include "src/base/own_file.h"

namespace dynamiccl {

// Creates the folder and keeps other processes from claiming it for as long as the result lives, whichever of
// these commands they run. A process that is killed leaves nothing locked. Fails with kUnavailable if another
// process has the folder.
Result<OwnFile> ClaimOutputFolder(const std::string& folder);

// Lets the output of a job begin in a new file at `path`. A file that is there is kept as "job.earlier.log"
// for "job.log", in place of one that was kept before.
void BeginLog(const std::string& path);

}  // namespace dynamiccl
