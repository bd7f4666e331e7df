// SPDX-License-Identifier: Apache-2.0
// A number that tells this process from every other one, its parent and children included. Process ids do
// not: they are used again, and they differ between process-id namespaces.
#pragma once

#include <cstdint>

namespace dynamiccl {

// A random number, drawn at the first call and drawn anew in a child of fork(). Any thread.
uint64_t ProcessToken();

}  // namespace dynamiccl
