// SPDX-License-Identifier: Apache-2.0
// Comma-separated tables of collective times as people publish them, plain or gzipped: columns by name, in
// any order, others ignored.
//
//   bytes, ranks   required; `bytes` is NCCL's total
//   time           one or more of us, median_us, oop_us, ip_us, oop_time_us, ip_time_us: repeats of the cell
//   nodes          1 without it
//   collective     or coll; without it the file's name must tell
//   algorithm      or algo; empty or absent: not known. protocol or proto alike
//   variant        PICO's: nccl_ring and nccl_tree forced that algorithm; nccl_nvls, nccl_pat and
//                  nccl_collnet* were not available there and are NCCL's own choice; others are left out
//   ch_lo, ch_hi   channels
//   system, nccl, config   together the name of the system, with " / " between; without them it is the file's
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/base/status.h"
#include "src/collective/collective.h"

namespace dynamiccl {

// Collects the times (timed_systems.h).
class TimedSystems;

// Whether a file that begins with `head` is such a table. Its header line decides.
bool LooksLikePublishedTable(std::string_view head);

// Adds the table's times to `systems`. An error names file and line. Where the table names no collective,
// `collective` applies if it is set, else the collective in the file's name. Rows without a time above 0, or
// of a collective that NCCL does not have, are skipped.
Status ReadPublishedTable(const std::string& path, std::optional<Collective> collective,
                          TimedSystems& systems);

}  // namespace dynamiccl
