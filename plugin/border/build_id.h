// SPDX-License-Identifier: Apache-2.0
// Identifies the build of this object that is loaded.
#pragma once

#include <string>

namespace dynamiccl {

// Returns the version and the linker's build id in hexadecimal ("0.1.0 5f3a..."). Two such texts are equal
// exactly if the code is the same. Ranks attest the text, because other code may compute other choices from
// the same policy. Walks the loaded objects, so call it only at initialisation. Any thread.
std::string BuildId();

}  // namespace dynamiccl
