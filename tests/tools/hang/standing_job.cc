// SPDX-License-Identifier: Apache-2.0
// Writes the traces of a large job that hangs, to measure how long the diagnosis takes:
//   standing_job FOLDER RANKS CALLS LATE
// All ranks issue CALLS AllReduces of different sizes. The calls alternate between the communicator of all
// ranks and those of eight neighbours. Rank LATE omits the last call, and the others are inside that call.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "traces/format/record_views.h"
#include "traces/format/trace_writer.h"

namespace dynamiccl {
namespace {

constexpr int kNeighbours = 8;

void Add(TraceSection& section, TraceRecord record) {
  record.issued_ns = static_cast<int64_t>(section.records.size()) * 1000;
  Seal(record);
  section.records.push_back(record);
}

TraceRecord Issued(uint64_t call) {
  IssuedCall issued;
  issued.call.call_number = call / 2;
  issued.call.bytes = 4096 + call % 97 * 64;
  return CallRecord(call % 2 == 0 ? 0 : 1, issued);
}

TraceRecord InsideOfLast(uint64_t call) {
  TraceRecord record = Issued(call);
  record.kind = static_cast<uint16_t>(RecordKind::kInside);
  return record;
}

TraceSection SectionOf(int rank, int ranks, uint64_t calls, bool late) {
  TraceSection section;
  section.rank = rank;
  section.world = ranks;
  section.process_id = rank + 1;
  section.host = fmt::format("node{}", rank / kNeighbours);
  Add(section, CommunicatorRecord(0, {0xa11, rank, ranks, ranks / kNeighbours}, 0));
  const auto node = static_cast<uint64_t>(rank / kNeighbours);
  Add(section, CommunicatorRecord(1, {0xb000 + node, rank % kNeighbours, kNeighbours, 1}, 0));
  for (uint64_t call = 0; call + 1 < calls; ++call) Add(section, Issued(call));
  if (!late) Add(section, InsideOfLast(calls - 1));
  return section;
}

}  // namespace
}  // namespace dynamiccl

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "standing_job FOLDER RANKS CALLS LATE\n");
    return 2;
  }
  const std::string folder = argv[1];
  const int ranks = std::atoi(argv[2]);
  const uint64_t calls =
      std::strtoull(argv[3], nullptr, 10) | 1;  // The last call is on the communicator of all ranks.
  std::filesystem::create_directories(folder);
  for (int rank = 0; rank < ranks; ++rank) {
    dynamiccl::Trace trace;
    trace.sections.push_back(dynamiccl::SectionOf(rank, ranks, calls, rank == std::atoi(argv[4])));
    const auto written = dynamiccl::WriteTrace(fmt::format("{}/{}.ctrace", folder, rank), trace);
    if (!written) {
      fmt::print(stderr, "{}\n", written.error().message);
      return 3;
    }
  }
}
