// SPDX-License-Identifier: Apache-2.0
// Finds functions of the CUDA driver that the process has already loaded. Never loads a driver.
#pragma once

namespace dynamiccl {

// A driver is searched at most this many times. Each search without a driver takes microseconds, and a
// process that has made so many calls without a driver will not load one later.
inline constexpr int kMostLooksForDriver = 64;

// Returns the driver's function of this name (cuda.h declares it); null without a driver, or if the driver
// does not have it. Any thread.
void* InCudaDriver(const char* name) noexcept;

}  // namespace dynamiccl
