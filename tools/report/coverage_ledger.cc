// SPDX-License-Identifier: Apache-2.0
#include "tools/report/coverage_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "src/collective/size_class.h"

namespace dynamiccl {
namespace {

using CallKind = std::tuple<uint32_t, Collective, uint64_t>;  // communicator, collective, bytes

struct Mean {
  double ns = 0;
  int64_t calls = 0;
};

CallKind KindOf(const TraceCall& call) {
  return {call.communicator, call.issued.call.collective, call.issued.call.bytes};
}

std::map<CallKind, Mean> MeansOf(const std::vector<TraceCall>& calls) {
  std::map<CallKind, Mean> means;
  for (const TraceCall& call : calls) {
    if (call.issued.duration_ns < 0) continue;
    Mean& mean = means[KindOf(call)];
    mean.ns += static_cast<double>(call.issued.duration_ns);
    ++mean.calls;
  }
  return means;
}

void Add(const IssuedCall& issued, double ns, CoveredCalls& to) {
  ++to.calls;
  to.bytes += issued.call.bytes;
  to.ns += ns;
}

// Share of the communication; by bytes where times are missing.
double ShareOf(const CoverageLedger& ledger, const CoveredCalls& part) {
  if (ledger.estimated_calls == ledger.total.calls && ledger.total.ns > 0) return part.ns / ledger.total.ns;
  if (ledger.total.bytes == 0)
    return static_cast<double>(part.calls) / static_cast<double>(ledger.total.calls);
  return static_cast<double>(part.bytes) / static_cast<double>(ledger.total.bytes);
}

const char* UnitOf(const CoverageLedger& ledger) {
  if (ledger.estimated_calls == ledger.total.calls && ledger.total.ns > 0) return "communication time";
  return ledger.total.bytes == 0 ? "calls" : "bytes (no times for all calls)";
}

using KeyOfShare = std::tuple<uint32_t, Collective, uint64_t>;  // communicator, collective, size class

// The last of each role, their mean.
std::map<KeyOfShare, double> SharesOf(const SectionCalls& section) {
  std::map<KeyOfShare, std::map<Role, double>> by_role;
  for (const WaitedShareView& waited : section.waited_shares)
    by_role[{waited.communicator, waited.collective, waited.bytes}][waited.role] = waited.share;
  std::map<KeyOfShare, double> shares;
  for (const auto& [key, of] : by_role) {
    double sum = 0;
    for (const auto& [role, share] : of) sum += share;
    shares[key] = sum / static_cast<double>(of.size());
  }
  return shares;
}

void AddExposed(const TraceCall& call, double ns, const std::map<KeyOfShare, double>& shares,
                ExposedTime& exposed) {
  // NCCL makes one question of several calls of a group: their keys are not those of the calls.
  if (call.issued.coverage != Coverage::kTunable || ns <= 0 || call.issued.call.group_size > 1) return;
  const CollectiveCall& issued = call.issued.call;
  const auto share =
      shares.find({call.communicator, issued.collective, LowerBound(SizeClassOf(issued.bytes))});
  if (share == shares.end()) return;
  exposed.known_ns += ns;
  exposed.waited_ns += ns * share->second;
}

std::string DescribeExposed(const CoverageLedger& ledger) {
  const double tunable = ledger.of[static_cast<size_t>(Coverage::kTunable)].ns;
  if (ledger.exposed.known_ns <= 0) return "";
  const double known = ledger.exposed.known_ns / tunable;
  const std::string of =
      known > 0.995 ? "the tunable time" : fmt::format("{:.0f} % of the tunable time", 100 * known);
  return fmt::format("; the program waits for {:.0f} % of {}",
                     100 * ledger.exposed.waited_ns / ledger.exposed.known_ns, of) +
         (known > 0.995 ? "" : ", more is not known");
}

}  // namespace

CoverageLedger LedgerOf(const SectionCalls& section) {
  const std::map<CallKind, Mean> means = MeansOf(section.calls);
  const std::map<KeyOfShare, double> shares = SharesOf(section);
  CoverageLedger ledger;
  for (const TraceCall& call : section.calls) {
    double ns = static_cast<double>(call.issued.duration_ns);
    if (ns < 0) {
      const auto mean = means.find(KindOf(call));
      ns = mean == means.end() ? -1 : mean->second.ns / static_cast<double>(mean->second.calls);
    }
    ledger.estimated_calls += ns >= 0 ? 1 : 0;
    Add(call.issued, std::max(ns, 0.0), ledger.of[static_cast<size_t>(call.issued.coverage)]);
    Add(call.issued, std::max(ns, 0.0), ledger.total);
    AddExposed(call, ns, shares, ledger.exposed);
  }
  return ledger;
}

std::string Describe(const CoverageLedger& ledger) {
  if (ledger.total.calls == 0) return "";
  const auto text = [&](Coverage coverage) {
    const double share = ShareOf(ledger, ledger.of[static_cast<size_t>(coverage)]);
    return fmt::format("{} {:.1f} %", Name(coverage), 100 * share);
  };
  std::vector<Coverage> others;
  for (int i = 0; i < kCoverages; ++i) {
    const auto coverage = static_cast<Coverage>(i);
    if (coverage != Coverage::kTunable && ledger.of[static_cast<size_t>(i)].calls > 0)
      others.push_back(coverage);
  }
  std::stable_sort(others.begin(), others.end(), [&](Coverage a, Coverage b) {
    return ShareOf(ledger, ledger.of[static_cast<size_t>(a)]) >
           ShareOf(ledger, ledger.of[static_cast<size_t>(b)]);
  });
  std::string line = fmt::format("{} of the {}", text(Coverage::kTunable), UnitOf(ledger));
  for (size_t i = 0; i < others.size(); ++i) line += (i == 0 ? "; " : ", ") + text(others[i]);
  return line + DescribeExposed(ledger);
}

Json ToJson(const CoverageLedger& ledger) {
  Json json = {{"calls", ledger.total.calls}, {"calls_with_time", ledger.estimated_calls}};
  if (ledger.exposed.known_ns > 0) {
    json["exposed"] = {{"known_seconds", ledger.exposed.known_ns * 1e-9},
                       {"waited_seconds", ledger.exposed.waited_ns * 1e-9}};
  }
  for (int i = 0; i < kCoverages; ++i) {
    const CoveredCalls& of = ledger.of[static_cast<size_t>(i)];
    if (of.calls == 0) continue;
    json[std::string(Name(static_cast<Coverage>(i)))] = {
        {"calls", of.calls}, {"bytes", of.bytes}, {"seconds", of.ns * 1e-9}};
  }
  return json;
}

}  // namespace dynamiccl
