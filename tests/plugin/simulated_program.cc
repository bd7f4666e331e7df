// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/simulated_program.h"

#include <algorithm>

#include "src/collective/legal_configs.h"

namespace dynamiccl::testing {
namespace {

constexpr uint64_t kNever = UINT64_MAX;
constexpr uint64_t kPeriods[] = {1, 2, 3, 4, 6, 9, 14, 40};
constexpr uint8_t kChannels[] = {1, 4, 16};

// Number of a config, below 2^16.
uint64_t CodeOf(const CollectiveConfig& config) {
  return uint64_t{config.channels} << 8 | static_cast<uint64_t>(config.algorithm) << 4 |
         static_cast<uint64_t>(config.protocol);
}

}  // namespace

// Applies the finaliser of SplitMix64 (Vigna, public domain) once for each number.
uint64_t NumberFrom(uint64_t seed, uint64_t a, uint64_t b, uint64_t c) {
  uint64_t mixed = seed;
  for (const uint64_t each : {a, b, c}) {
    mixed += each + 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    mixed ^= mixed >> 31;
  }
  return mixed;
}

SimulatedProgram::SimulatedProgram(uint64_t seed)
    : seed_(seed),
      period_(kPeriods[NumberFrom(seed, 1) % std::size(kPeriods)]),
      changes_at_(NumberFrom(seed, 2) % 3 == 0 ? 200 + NumberFrom(seed, 3) % 2000 : kNever),
      slower_from_(NumberFrom(seed, 4) % 3 == 0 ? 200 + NumberFrom(seed, 5) % 2000 : kNever),
      has_steps_(NumberFrom(seed, 6) % 12 != 0),
      believes_(NumberFrom(seed, 7) % 3 == 0),
      computed_ns_(static_cast<int64_t>(100'000 + NumberFrom(seed, 8) % 4'000'000)) {}

DecisionKey SimulatedProgram::CallAt(uint64_t call) const {
  uint64_t place = has_steps_ ? call % period_ : call;
  if (call >= changes_at_) place += 1000;
  if (NumberFrom(seed_, 10, call) % 300 == 0) place = 2000;
  const uint64_t drawn = NumberFrom(seed_, 11, place);
  DecisionKey key;
  // A program has at most ten different calls, so its steps repeat calls.
  const uint64_t kind = drawn % 10;
  key.collective = static_cast<Collective>(NumberFrom(seed_, 12, kind) % kTunableCollectives);
  key.bytes = uint64_t{4096} << NumberFrom(seed_, 13, kind) % 12;
  key.call_number = call;
  return key;
}

Role SimulatedProgram::RoleOf(const DecisionKey& key, uint32_t structure) const {
  if (structure % 16 == 0) return Role::kUnknown;
  return static_cast<Role>(NumberFrom(seed_, 14, key.bytes, structure % 3) % kRoles);
}

CollectiveConfig SimulatedProgram::PolicyChoice(const TableKey& key) const {
  const uint64_t drawn = NumberFrom(seed_, 20, KeyCode(key));
  const auto candidates = Candidates(key);
  if (drawn % 4 != 0 || candidates.empty()) return kLeaveNcclAlone;
  return candidates[(drawn >> 8) % candidates.size()].config;
}

std::vector<ProbeCandidate> SimulatedProgram::Candidates(const TableKey& key) const {
  const ConfigMask legal = NcclConfigs(key.collective);
  std::vector<ProbeCandidate> candidates;
  for (int algorithm = 0; algorithm < kAlgorithms; ++algorithm) {
    for (int protocol = 0; protocol < kProtocols; ++protocol) {
      const auto a = static_cast<Algorithm>(algorithm);
      const auto p = static_cast<Protocol>(protocol);
      if (!legal[ConfigIndex(a, p)]) continue;
      for (const uint8_t channels : kChannels) {
        const CollectiveConfig config{a, p, channels};
        const uint64_t drawn = NumberFrom(seed_, 21, CodeOf(config));
        candidates.push_back({config, 0.7 + static_cast<double>(drawn % 100) / 100});
      }
    }
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const auto& one, const auto& other) { return one.predicted < other.predicted; });
  return candidates;
}

std::optional<CollectiveConfig> SimulatedProgram::Confirmed(const TableKey& key) const {
  const uint64_t drawn = NumberFrom(seed_, 22, KeyCode(key));
  if (drawn % 16 != 0) return std::nullopt;
  const auto candidates = Candidates(key);
  return candidates.empty() ? kLeaveNcclAlone : candidates[(drawn >> 8) % candidates.size()].config;
}

std::optional<Expectation> SimulatedProgram::Expected(const EffectQuestion& question) const {
  if (!believes_) return std::nullopt;
  const uint64_t drawn = NumberFrom(seed_, 23, static_cast<uint64_t>(question.subject.algorithm),
                                    static_cast<uint64_t>(question.subject.protocol));
  return Expectation{{-static_cast<double>(drawn % 40) / 100, 0.05}, ExpectedFrom::kPolicy};
}

// Some configs halve the times of all calls, and others double them. Such a fabric differs from what a cost
// model describes.
int64_t SimulatedProgram::TransferNs(const DecisionKey& key, const CollectiveConfig& config) const {
  int64_t ns = 50'000 + static_cast<int64_t>(key.bytes);
  if (key.call_number >= slower_from_) ns *= 3;
  if (config.leaves_nccl_alone()) return ns;
  const uint64_t of_fabric = key.call_number >= slower_from_ ? 31 : 30;
  const auto percent = static_cast<int64_t>(40 + NumberFrom(seed_, of_fabric, CodeOf(config)) % 160);
  return ns * percent / 100;
}

}  // namespace dynamiccl::testing
