// SPDX-License-Identifier: Apache-2.0
// Which build of this object is loaded.
#pragma once

#include <string>

namespace dynamiccl {

// Version and the linker's build id in hexadecimal ("0.1.0 5f3a..."): equal exactly when the code is. Ranks
// attest it, since other code may compute other choices from the same policy. Walks the loaded objects, so it
// is for initialisation only. Any thread.
std::string BuildId();

}  // namespace dynamiccl
