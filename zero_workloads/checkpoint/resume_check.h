// SPDX-License-Identifier: Apache-2.0
// Whether a run may go on from a checkpoint: which settings must agree, and which others have changed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace dynamiccl::zero {

// `saved` and `own` are values of an index: "settings" (name=value words), "text.xxh3", "data.next_row". What
// the checkpoint does not have, as after an import, is not compared. Another model, seed, text or place in
// the data is kInvalidArgument and names it; the result is the other settings that have changed, in words.
Result<std::vector<std::string>> CheckResumable(const std::map<std::string, std::string>& saved,
                                                const std::map<std::string, std::string>& own);

// The values that an engine takes over are numbers in their ranges; else kCorrupt, and which is not. One that
// is not there is no error, but for a loss scale with a part missing.
Status CheckEngineValues(const std::map<std::string, std::string>& values);

}  // namespace dynamiccl::zero
