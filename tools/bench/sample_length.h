// SPDX-License-Identifier: Apache-2.0
// How long a sample of a sweep is, and the probe of the machine beside it.
#pragma once

namespace dynamiccl {

// Long against a clock read and a wake-up, short enough that in most samples no other process takes a core.
// Many short samples and a median stand noise better than few long ones.
inline constexpr double kSampleUs = 600;
inline constexpr double kProbeMilliseconds = 1;

}  // namespace dynamiccl
