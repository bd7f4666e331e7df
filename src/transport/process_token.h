// SPDX-License-Identifier: Apache-2.0
// A number that tells this process from every other, also from its parent and children.
#pragma once

#include <cstdint>

namespace dynamiccl {

// Random, drawn at the first call and again in a child of fork(). Any thread.
uint64_t ProcessToken();

}  // namespace dynamiccl
