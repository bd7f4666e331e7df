// SPDX-License-Identifier: Apache-2.0
// Reads comma-separated tables of collective times as people publish them, plain or gzipped. The first line
// names the columns, which may come in any order. Columns with other names than these are ignored:
//
//   bytes, ranks   required; `bytes` is NCCL's total
//   us, median_us, oop_us, ip_us, oop_time_us, ip_time_us
//                  measured times in microseconds; at least one of these columns is required
//   nodes          number of nodes; 1 if the column is missing
//   collective     or coll; if the column is missing, the file's name must contain the collective
//   algorithm      or algo; empty or missing: not known. The column protocol (or proto) is read alike
//   variant        as the benchmark PICO writes it. nccl_ring and nccl_tree: this algorithm was forced.
//                  nccl_nvls, nccl_pat and nccl_collnet*: the measured machines lacked this algorithm, so
//                  NCCL chose another one. Rows with any other variant are skipped
//   ch_lo, ch_hi   first and last channel
//   system, nccl, config
//                  joined by " / ", the name of the measured system; without them it is the file's name
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/base/status.h"
#include "src/collective/collective.h"

namespace dynamiccl {

// Collects the times that are read (timed_systems.h).
class TimedSystems;

// Returns whether a file that begins with `head` is a table of published times. The names of the columns in
// its first line decide.
bool LooksLikePublishedTable(std::string_view head);

// Adds the table's times to `systems`. An error names file and line. Where the table names no collective,
// `collective` applies if it is set, else the collective in the file's name. Rows without a time above 0, or
// of a collective that NCCL does not have, are skipped.
Status ReadPublishedTable(const std::string& path, std::optional<Collective> collective,
                          TimedSystems& systems);

}  // namespace dynamiccl
