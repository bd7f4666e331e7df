// SPDX-License-Identifier: Apache-2.0
// Which text a command trains on that the user need not name.
#pragma once

#include <string>

#include "src/base/status.h"

namespace dynamiccl {

// `named`, a file or a folder, made absolute; where it is empty, the Shakespeare that
// tools/setup/fetch_shakespeare.sh puts into the user's cache.
Result<std::string> FindTrainingText(const std::string& named);

}  // namespace dynamiccl
