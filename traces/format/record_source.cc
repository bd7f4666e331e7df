// SPDX-License-Identifier: Apache-2.0
#include "traces/format/record_source.h"

namespace dynamiccl {
namespace {

// The description of a section without its records.
TraceSection DescriptionOf(const TraceSection& section) {
  TraceSection description;
  description.rank = section.rank;
  description.world = section.world;
  description.process_id = section.process_id;
  description.flags = section.flags;
  description.host = section.host;
  description.library = section.library;
  description.writer = section.writer;
  description.opened = section.opened;
  description.closed_at = section.closed_at;
  description.closed = section.closed;
  description.lost = section.lost;
  description.replaced = section.replaced;
  return description;
}

}  // namespace

Status MemoryRecords::Pass(RecordSink& sink) const {
  for (const TraceSection& section : trace_.sections) {
    DYNAMICCL_CHECK_OK(sink.BeginSection(DescriptionOf(section), section.records.size()));
    DYNAMICCL_CHECK_OK(sink.Take(section.records));
    DYNAMICCL_CHECK_OK(sink.EndSection(0));
  }
  return {};
}

}  // namespace dynamiccl
