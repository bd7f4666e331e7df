// SPDX-License-Identifier: Apache-2.0
// The file is a header of 64 bytes, entries of 64 bytes, findings of 64 bytes, and the SHA-256 of all these.
// The checks come in the order size, header, trailer, entries, and each relies only on the ones before it.
#include "src/decision/site_store/site_store_file.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>

#include "src/base/byte_codec.h"
#include "src/base/job_fail_point.h"
#include "src/base/log.h"
#include "src/base/sha256.h"
#include "src/base/unique_fd.h"
#include "src/base/whole_file.h"
#include "src/collective/legal_configs.h"

namespace dynamiccl {
namespace {

// Format version of the file. Version 1 had no findings.
constexpr uint32_t kVersion = 2;
constexpr uint32_t kHeaderBytes = 64;
constexpr uint32_t kEntryBytes = 64;
constexpr size_t kTrailerBytes = 32;
constexpr size_t kMaxBytes = kHeaderBytes + (kMaxSiteEntries + kMaxFindings) * kEntryBytes + kTrailerBytes;
// Bits of FindingKey::collectives that may be set.
constexpr uint8_t kCollectiveBits = (1 << kTunableCollectives) - 1;
constexpr char kDamaged[] = "the file is damaged or cut short: delete it, jobs will learn again";

// An error that names the byte and the check that failed.
tl::unexpected<Error> Damaged(size_t byte, const std::string& check) {
  return WithHint(MakeError(ErrorKind::kCorrupt, "byte {}: {}", byte, check), kDamaged);
}

void PutPlace(ByteWriter& out, const SitePlace& place) {
  out.Put(place.fabric);
  out.Put(place.nccl_version);
  out.Put(place.n_ranks);
  out.Put(place.n_nodes);
}

SitePlace GetPlace(ByteReader& in) {
  SitePlace place;
  place.fabric = in.Get<std::array<uint8_t, 16>>();
  place.nccl_version = in.Get<uint32_t>();
  place.n_ranks = in.Get<int32_t>();
  place.n_nodes = in.Get<int32_t>();
  return place;
}

void PutEntry(ByteWriter& out, const SiteKey& key, const Confirmed& confirmed) {
  PutPlace(out, key.place);
  out.Put(key.key.collective);
  out.Put(key.key.size_class.index);
  out.Put(key.key.role);
  out.Put(key.regime);
  out.Put(confirmed.config.algorithm);
  out.Put(confirmed.config.protocol);
  out.Put(confirmed.config.channels);
  out.Put(uint8_t{0});
  out.Put(confirmed.log2_ratio);
  out.Put(confirmed.pairs);
  out.Put(confirmed.runs);
  out.Put(confirmed.confirmed_s);
  out.AlignTo(kEntryBytes);
}

std::pair<SiteKey, Confirmed> GetEntry(ByteReader& in) {
  std::pair<SiteKey, Confirmed> entry;
  auto& [key, confirmed] = entry;
  key.place = GetPlace(in);
  key.key.collective = in.Get<Collective>();
  key.key.size_class.index = in.Get<uint8_t>();
  key.key.role = in.Get<Role>();
  key.regime = in.Get<Regime>();
  confirmed.config.algorithm = in.Get<Algorithm>();
  confirmed.config.protocol = in.Get<Protocol>();
  confirmed.config.channels = in.Get<uint8_t>();
  in.Get<uint8_t>();
  confirmed.log2_ratio = in.Get<int32_t>();
  confirmed.pairs = in.Get<uint32_t>();
  confirmed.runs = in.Get<uint32_t>();
  confirmed.confirmed_s = in.Get<int64_t>();
  return entry;
}

void PutFinding(ByteWriter& out, const FindingKey& key, const StepFinding& finding) {
  PutPlace(out, key.place);
  out.Put(key.collectives);
  out.Put(key.algorithm);
  out.Put(key.protocol);
  out.Put(key.channels);
  out.Put(static_cast<float>(finding.circumstances.slowness));
  out.Put(static_cast<float>(finding.circumstances.share));
  out.Put(static_cast<float>(finding.effect));
  out.Put(static_cast<float>(finding.error));
  out.Put(finding.steps);
  out.AlignTo(8);
  out.Put(finding.found_s);
  out.AlignTo(kEntryBytes);
}

std::pair<FindingKey, StepFinding> GetFinding(ByteReader& in) {
  std::pair<FindingKey, StepFinding> entry;
  auto& [key, finding] = entry;
  key.place = GetPlace(in);
  key.collectives = in.Get<uint8_t>();
  key.algorithm = in.Get<Algorithm>();
  key.protocol = in.Get<Protocol>();
  key.channels = in.Get<ChannelCount>();
  finding.circumstances.slowness = in.Get<float>();
  finding.circumstances.share = in.Get<float>();
  finding.effect = in.Get<float>();
  finding.error = in.Get<float>();
  finding.steps = in.Get<uint32_t>();
  in.Get<uint32_t>();
  finding.found_s = in.Get<int64_t>();
  return entry;
}

bool IsKnownConfig(Collective collective, const CollectiveConfig& config) {
  if (config.leaves_nccl_alone()) return config == kLeaveNcclAlone;
  const auto algorithm = static_cast<int>(config.algorithm);
  const auto protocol = static_cast<int>(config.protocol);
  if (algorithm < 0 || algorithm >= kAlgorithms || protocol < 0 || protocol >= kProtocols) return false;
  return NcclConfigs(collective)[ConfigIndex(config.algorithm, config.protocol)] && config.channels <= 64;
}

bool IsPossible(const SitePlace& place) {
  return place.n_ranks >= 1 && place.n_nodes >= 1 && place.n_nodes <= place.n_ranks;
}

// Returns what is wrong with an entry; an empty text if the entry may be used.
const char* FaultOf(const SiteKey& key, const Confirmed& confirmed) {
  if (static_cast<int>(key.key.collective) >= kTunableCollectives) return "not a collective that is tuned";
  if (static_cast<int>(key.key.role) >= kRoles || static_cast<int>(key.regime) >= kRegimes) {
    return "a role or regime that does not exist";
  }
  if (!IsPossible(key.place)) return "a communicator of a shape that does not exist";
  return IsKnownConfig(key.key.collective, confirmed.config) ? "" : "a config that NCCL does not have";
}

// Returns what is wrong with a finding; an empty text if it may be used. Numbers that are not finite would
// spoil every average.
const char* FaultOf(const FindingKey& key, const StepFinding& finding) {
  if (!IsPossible(key.place)) return "a communicator of a shape that does not exist";
  if (key.collectives == 0 || (key.collectives & ~kCollectiveBits) != 0)
    return "a collective that does not exist";
  const auto algorithm = static_cast<int>(key.algorithm), protocol = static_cast<int>(key.protocol);
  const bool nccls = key.algorithm == Algorithm::kUndefined && key.protocol == Protocol::kUndefined;
  const bool known = algorithm >= 0 && algorithm < kAlgorithms && protocol >= 0 && protocol < kProtocols;
  if ((!nccls && !known) || static_cast<int>(key.channels) >= kChannelCounts)
    return "a config that NCCL does not have";
  const auto& [slowness, share] = finding.circumstances;
  for (const double number : {slowness, share, finding.effect, finding.error}) {
    if (!std::isfinite(number)) return "a number that is not finite";
  }
  return finding.error > 0 && finding.steps > 0 ? "" : "a finding without steps or error";
}

// The numbers of entries and of findings in a file.
struct Counts {
  uint32_t entries = 0;
  uint32_t findings = 0;
};

// Returns the numbers of entries and findings. It is an error if they do not fill the file exactly.
Result<Counts> CheckHeader(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes + kTrailerBytes) return Damaged(bytes.size(), "cut short");
  if (bytes.size() > kMaxBytes) return Damaged(kMaxBytes, "longer than any site store");
  if (std::memcmp(bytes.data(), kSiteStoreMagic, sizeof(kSiteStoreMagic)) != 0) {
    return Damaged(0, "not a site store (magic)");
  }
  ByteReader header(bytes.subspan(sizeof(kSiteStoreMagic), kHeaderBytes - sizeof(kSiteStoreMagic)));
  const auto version = header.Get<uint32_t>();
  if (version < 1 || version > kVersion) {
    return WithHint(MakeError(ErrorKind::kUnsupported, "byte 8: format version {}, this build reads 1 to {}",
                              version, kVersion),
                    "use the build that wrote it, or another path");
  }
  if (header.Get<uint32_t>() != kHeaderBytes || header.Get<uint32_t>() != kEntryBytes) {
    return Damaged(12, "another size of header or entries");
  }
  Counts counts{header.Get<uint32_t>()};
  if (version > 1) counts.findings = header.Get<uint32_t>();
  const size_t both = size_t{counts.entries} + counts.findings;
  if (counts.entries > kMaxSiteEntries || counts.findings > kMaxFindings ||
      bytes.size() != kHeaderBytes + both * kEntryBytes + kTrailerBytes) {
    return Damaged(
        20, fmt::format("{} entries and {} findings do not fill the file", counts.entries, counts.findings));
  }
  return counts;
}

Status CheckTrailer(std::span<const std::byte> bytes) {
  const size_t at = bytes.size() - kTrailerBytes;
  const Sha256Digest digest = Sha256Of(bytes.first(at));
  if (std::memcmp(digest.data(), bytes.data() + at, digest.size()) != 0) {
    return Damaged(at, "SHA-256 of the file is wrong");
  }
  return {};
}

Result<SiteStore> Parse(std::span<const std::byte> bytes) {
  DYNAMICCL_TRY(const Counts counts, CheckHeader(bytes));
  DYNAMICCL_CHECK_OK(CheckTrailer(bytes));
  SiteStore store;
  const auto add = [&](size_t at, const auto& read, const auto& known) -> Status {
    ByteReader reader(bytes.subspan(at, kEntryBytes));
    const auto [key, learnt] = read(reader);
    if (const char* fault = FaultOf(key, learnt); *fault != 0) return Damaged(at, fault);
    const size_t before = known.size();
    store.Learn(key, learnt);
    return known.size() == before ? Status(Damaged(at, "an entry twice")) : Status();
  };
  const auto place_of = [](size_t number) { return kHeaderBytes + number * kEntryBytes; };
  for (size_t i = 0; i < counts.entries; ++i) DYNAMICCL_CHECK_OK(add(place_of(i), GetEntry, store.entries()));
  for (size_t i = 0; i < counts.findings; ++i)
    DYNAMICCL_CHECK_OK(add(place_of(counts.entries + i), GetFinding, store.findings()));
  return store;
}

// Takes the lock file. Fails if that takes longer than `patience_ns`, because no part of a job may depend on
// the store.
Result<UniqueFd> Lock(const std::string& path, int64_t patience_ns) {
  UniqueFd fd(::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd.valid()) {
    return WithHint(MakeError(ErrorKind::kUnavailable, "{}.lock: {}", path, ErrnoText(errno)),
                    "check that its folder exists and may be written to");
  }
  // Nanoseconds between two tries.
  constexpr int64_t kBetweenTriesNs = 20'000'000;
  for (int64_t waited = 0; waited <= patience_ns; waited += kBetweenTriesNs) {
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return MakeError(ErrorKind::kUnavailable, "{}.lock: {}", path, ErrnoText(errno));
    }
    std::this_thread::sleep_for(std::chrono::nanoseconds(kBetweenTriesNs));
  }
  return MakeError(ErrorKind::kTimeout, "{}.lock is held by another job", path);
}

}  // namespace

std::vector<std::byte> FormatSiteStore(const SiteStore& store) {
  ByteWriter out;
  out.PutBytes(std::as_bytes(std::span(kSiteStoreMagic)));
  out.Put(kVersion);
  out.Put(kHeaderBytes);
  out.Put(kEntryBytes);
  out.Put(static_cast<uint32_t>(store.entries().size()));
  out.Put(static_cast<uint32_t>(store.findings().size()));
  out.AlignTo(kHeaderBytes);
  for (const auto& [key, confirmed] : store.entries()) PutEntry(out, key, confirmed);
  for (const auto& [key, finding] : store.findings()) PutFinding(out, key, finding);
  const Sha256Digest digest = Sha256Of(out.buffer());
  out.PutBytes(std::as_bytes(std::span(digest)));
  return std::move(out.buffer());
}

Result<SiteStore> ParseSiteStore(std::span<const std::byte> bytes, const std::string& name) {
  auto store = Parse(bytes);
  if (!store) return Wrap(store.error(), name);
  return store;
}

Result<SiteStore> ReadSiteStore(const std::string& path) {
  const auto file = ReadWholeFile(path, kMaxBytes);
  if (!file && file.error().kind == ErrorKind::kNotFound) return SiteStore();
  if (!file) return tl::unexpected<Error>(file.error());
  return ParseSiteStore(file->bytes, path);
}

Status AddToSiteStore(const std::string& path, const SiteStore& learnt, int64_t now_s, int64_t patience_ns) {
  DYNAMICCL_TRY(const UniqueFd lock, Lock(path, patience_ns));
  PassJobFailPoint(JobFailPoint::kStoreLocked);
  auto store = ReadSiteStore(path);
  if (!store && store.error().kind == ErrorKind::kCorrupt) {
    Log(LogLevel::kWarn, "{}; it is kept as {}.damaged and begun anew", store.error().message, path);
    if (std::rename(path.c_str(), (path + ".damaged").c_str()) != 0) {
      return MakeError(ErrorKind::kUnavailable, "{}: {}", path, ErrnoText(errno));
    }
    store = SiteStore();
  }
  // A file of another format version is not changed, so that the build that wrote it can still read it.
  if (!store) return tl::unexpected<Error>(store.error());
  store->Learn(learnt);
  store->Age(now_s);
  DYNAMICCL_CHECK_OK(WriteWholeFile(path, FormatSiteStore(*store)));
  PassJobFailPoint(JobFailPoint::kStoreRenamed);
  return {};
}

}  // namespace dynamiccl
