// SPDX-License-Identifier: Apache-2.0
// Decides whether a run may resume from a checkpoint, and lists settings that have changed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl::zero {

// Compares the values of an index, `saved`, with those of this run, `own`: "settings" (name=value words),
// "text.xxh3" and "data.next_row". Values that the checkpoint lacks, as after an import, are not compared. If
// model, seed, text or position in the data differ, the error is kInvalidArgument and names the difference.
// The result lists the other settings that have changed, for example "stage 1 -> 3".
Result<std::vector<std::string>> CheckResumable(const std::map<std::string, std::string>& saved,
                                                const std::map<std::string, std::string>& own);

// Returns kCorrupt, with the name, if a value that an engine restores is not a number in its range. A missing
// value is no error, except if a loss scale has only some of its values.
Status CheckEngineValues(const std::map<std::string, std::string>& values);

// Removes the state of a fixed loss scale, which version 0.1.0 saved as well. A run that resumes with a
// dynamic scale then starts at its own first scale.
void DropFixedLossScale(std::map<std::string, std::string>& values);

}  // namespace dynamiccl::zero
