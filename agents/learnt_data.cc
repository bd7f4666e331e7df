// SPDX-License-Identifier: Apache-2.0
// Values are hashed one by one as 64-bit numbers, because structures have padding.
#include "agents/learnt_data.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cmath>

namespace dynamiccl::agents {
namespace {

// Hashes numbers in the order in which they are added.
class Checksum {
 public:
  template <typename... Numbers>
  void Add(Numbers... numbers) {
    const int64_t row[] = {static_cast<int64_t>(numbers)...};
    value_ = XXH3_64bits_withSeed(row, sizeof row, value_);
  }
  void AddOctaves(double octaves) { Add(std::llround(octaves * (1 << 20))); }
  template <typename Inputs>
  void AddInputs(const Inputs& inputs) {
    value_ = XXH3_64bits_withSeed(inputs.data(), sizeof inputs, value_);
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0;
};

}  // namespace

uint64_t ChecksumOf(const std::vector<CallSequence>& sequences) {
  Checksum checksum;
  for (const CallSequence& sequence : sequences) {
    checksum.Add(sequence.calls.size());
    for (const IssuedCall& issued : sequence.calls) {
      const CollectiveCall& call = issued.call;
      checksum.Add(call.call_number, call.bytes, call.collective, call.data_type, call.op,
                   call.index_in_group, call.group_size, call.n_ranks, issued.labelled_role,
                   issued.labelled_phase, issued.labelled_stage);
    }
  }
  return checksum.value();
}

uint64_t ChecksumOf(const std::vector<ConfigSample>& samples) {
  Checksum checksum;
  for (const ConfigSample& sample : samples) {
    checksum.AddInputs(sample.inputs);
    checksum.Add(sample.key);
    for (const double value : {sample.residual, sample.weight, sample.noise}) checksum.AddOctaves(value);
  }
  return checksum.value();
}

uint64_t ChecksumOf(const std::vector<EffectSample>& samples) {
  Checksum checksum;
  for (const EffectSample& sample : samples) {
    checksum.AddInputs(sample.inputs);
    for (const double value : {sample.octaves, sample.error, sample.weight}) checksum.AddOctaves(value);
  }
  return checksum.value();
}

}  // namespace dynamiccl::agents
