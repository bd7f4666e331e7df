// SPDX-License-Identifier: Apache-2.0
// One pass collects, for each communicator, the hosts of its ranks and whether a tuner was asked. A second
// pass writes the counts and seals the changed records.
#include "traces/format/nodes_by_host.h"

#include <map>
#include <set>
#include <string>

#include "traces/format/record_views.h"

namespace dynamiccl {
namespace {

// What the sections show about one communicator.
struct Members {
  std::set<std::string> hosts;
  int described = 0;  // number of ranks that have a Communicator record
  bool told = false;  // NCCL gave a tuner on one of the ranks the number
};

bool Is(const TraceRecord& record, RecordKind kind) {
  return record.kind == static_cast<uint16_t>(kind);
}

// Adds what one section shows.
void Count(const TraceSection& section, std::map<uint64_t, Members>& communicators) {
  std::map<uint32_t, uint64_t> ids;
  for (const TraceRecord& record : section.records) {
    if (Is(record, RecordKind::kDecision)) {
      const auto id = ids.find(record.communicator);
      if (id != ids.end()) communicators[id->second].told = true;
    }
    if (!Is(record, RecordKind::kCommunicator)) continue;
    ids[record.communicator] = record.bytes;
    Members& members = communicators[record.bytes];
    members.hosts.insert(section.host);
    ++members.described;
    members.told |= CommunicatorOf(record).n_nodes != 1;
  }
}

// True where the number of hosts may stand for the number of nodes.
bool CountsAsNodes(const Members& members, const CommunicatorInfo& info) {
  return !members.told && members.described == info.n_ranks && members.hosts.size() > 1 &&
         !members.hosts.contains("");
}

}  // namespace

void CountNodesByHost(Trace& trace) {
  std::map<uint64_t, Members> communicators;
  for (const TraceSection& section : trace.sections) Count(section, communicators);
  for (TraceSection& section : trace.sections) {
    for (TraceRecord& record : section.records) {
      if (!Is(record, RecordKind::kCommunicator)) continue;
      const Members& members = communicators.at(record.bytes);
      if (!CountsAsNodes(members, CommunicatorOf(record))) continue;
      record.index_in_group = static_cast<uint16_t>(members.hosts.size());
      Seal(record);
    }
  }
}

}  // namespace dynamiccl
