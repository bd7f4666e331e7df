// SPDX-License-Identifier: Apache-2.0
// Checksums of what a training learns from, after files are read and jobs are drawn. A policy's provenance
// has them, so a check can tell without training that a changed generator, label, median or cost model would
// make another policy of the same files.
#pragma once

#include <cstdint>
#include <vector>

#include "agents/config/config_sample.h"
#include "agents/config/effect_sample.h"
#include "agents/structure/call_sequence.h"

namespace dynamiccl::agents {

// XXH3 of the calls and their labels. Names of sequences do not count.
uint64_t ChecksumOf(const std::vector<CallSequence>& sequences);
// XXH3 of the samples. Measured values count in steps of 2^-20 octaves.
uint64_t ChecksumOf(const std::vector<ConfigSample>& samples);
uint64_t ChecksumOf(const std::vector<EffectSample>& samples);

}  // namespace dynamiccl::agents
