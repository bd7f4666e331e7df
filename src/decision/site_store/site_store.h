// SPDX-License-Identifier: Apache-2.0
// A site store holds what jobs on this site have learnt, in two kinds of entries. A confirmed choice belongs
// to a fabric, an NCCL version, a shape of the communicator and a key: a later job in the same place begins
// with it and does not try it again. A finding says what a config did to the steps of one kind of job in one
// place: a later job in another place, but in like circumstances, first tries the configs that were good in
// the finding's place (guard/expected_effect.h). This file has values only; site_store_file.h reads and
// writes them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "src/collective/channel_count.h"
#include "src/collective/collective_config.h"
#include "src/collective/role.h"
#include "src/decision/decision_table.h"

namespace dynamiccl {

// The place where something was learnt. Another machine, another topology, or different values of variables
// that influence what NCCL measures make another place.
struct SitePlace {
  // Digest of the constants that NCCL measured at init.
  std::array<uint8_t, 16> fabric{};
  uint32_t nccl_version = 0;  // as NCCL_VERSION_CODE
  int32_t n_ranks = 1;
  int32_t n_nodes = 1;

  auto operator<=>(const SitePlace&) const = default;
};

// The subject of one entry: a key at a place, in a state of the fabric. Entries are ordered by all fields.
struct SiteKey {
  SitePlace place;
  TableKey key;
  Regime regime = Regime::kNormal;

  auto AsTuple() const { return std::tuple(place, key.collective, key.size_class.index, key.role, regime); }
  friend bool operator<(const SiteKey& a, const SiteKey& b) { return a.AsTuple() < b.AsTuple(); }
  friend bool operator==(const SiteKey& a, const SiteKey& b) { return a.AsTuple() == b.AsTuple(); }
};

// Holds what runs have confirmed for a SiteKey.
struct Confirmed {
  // The best config. kLeaveNcclAlone: no tried config was better than NCCL's choice.
  CollectiveConfig config;
  // log2 of the config's time over the time of NCCL's choice, in units of 1/65536 (16 fraction bits).
  int32_t log2_ratio = 0;
  uint32_t pairs = 0;       // number of paired samples behind the result
  uint32_t runs = 0;        // number of runs that confirmed it
  int64_t confirmed_s = 0;  // time of the last confirmation, in seconds since 1970

  friend bool operator==(const Confirmed&, const Confirmed&) = default;
};

// Circumstances describe a job's communication under NCCL's choice at the time when an experiment began. Two
// jobs in like circumstances are expected to gain from the same configs, even if their fabrics have different
// names.
struct Circumstances {
  // log2 of the measured time of calls over the time that NCCL's cost model predicts, averaged by bytes.
  double slowness = 0;
  // Time of a step's calls over the time of the step. Overlapping calls may make this larger than 1.
  double share = 0;

  friend bool operator==(const Circumstances&, const Circumstances&) = default;
};

// The subject of a finding: a kind of job at a place, and a config that all large calls of the job used in
// the same steps. For NCCL's own choice, algorithm and protocol are kUndefined; its finding states no effect
// and only stores the circumstances.
struct FindingKey {
  SitePlace place;
  uint8_t collectives = 0;  // bit c is set: the job calls the collective with NCCL's number c
  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  ChannelCount channels = ChannelCount::kOne;
  // The job's slowness in whole octaves. It is part of the key, so findings from a time when a link was slow
  // do not replace those from other times. SiteStore::Learn sets it.
  int8_t octave = 0;

  auto operator<=>(const FindingKey&) const = default;
};

// By how much a config changed the time of a step, compared with NCCL's choice.
struct StepFinding {
  Circumstances circumstances;
  double effect = 0;    // log of the ratio of the times: -0.05 means that a step takes 5 % less time
  double error = 0;     // standard error of `effect`
  uint32_t steps = 0;   // steps that used the config
  int64_t found_s = 0;  // seconds since 1970

  friend bool operator==(const StepFinding&, const StepFinding&) = default;
};

// An entry is used for 30 days, here in seconds. Then its key is searched again, because drivers, firmware
// and neighbouring jobs change. After 180 days the entry is dropped.
inline constexpr int64_t kTrustedSeconds = 30LL * 24 * 3600;
inline constexpr int64_t kForgottenSeconds = 180LL * 24 * 3600;
// The most entries: far more than the keys of a site's jobs. A file of this many entries has 1 MiB.
inline constexpr size_t kMaxSiteEntries = 16384;
// The most findings: a few for each place and kind of job.
inline constexpr size_t kMaxFindings = 2048;

// The entries in memory. A value; one thread at a time. Pairs and runs of equal configs add up, so jobs that
// end at the same time may add their results in any order.
class SiteStore {
 public:
  // Adds what a run confirmed. If the config is the stored one, its pairs and runs are added up. Another
  // config replaces the entry, unless the entry is newer.
  void Learn(const SiteKey& key, const Confirmed& confirmed);
  // Returns what a run at time `now_s` (seconds since 1970) may begin with. Nothing if the entry is too old,
  // or from more than a day in the future, which means that a clock was set back.
  std::optional<Confirmed> Known(const SiteKey& key, int64_t now_s) const;
  // Adds what a run found about a config. It replaces an earlier finding unless that one is newer.
  void Learn(FindingKey key, const StepFinding& finding);
  // Adds all that another store has.
  void Learn(const SiteStore& other);
  // Drops entries and findings that are too old, then the oldest ones above kMaxSiteEntries and kMaxFindings.
  void Age(int64_t now_s);

  const std::map<SiteKey, Confirmed>& entries() const { return entries_; }
  const std::map<FindingKey, StepFinding>& findings() const { return findings_; }
  bool empty() const { return entries_.empty() && findings_.empty(); }
  friend bool operator==(const SiteStore&, const SiteStore&) = default;

 private:
  std::map<SiteKey, Confirmed> entries_;
  std::map<FindingKey, StepFinding> findings_;
};

// True if a run at time `now_s` may use what was learnt at `learnt_s`, both in seconds since 1970.
bool IsTrusted(int64_t learnt_s, int64_t now_s);

}  // namespace dynamiccl
