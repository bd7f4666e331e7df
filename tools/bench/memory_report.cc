// SPDX-License-Identifier: Apache-2.0
// Reads /proc/self/statm and formats amounts as nccl-tests does.
#include "tools/bench/memory_report.h"

#include <unistd.h>

#include <cmath>
#include <fstream>

namespace dynamiccl {
namespace {

// Formats bytes like nccl-tests' getMemString: "1.25 MB", "12.5 MB", "125 MB".
std::string Amount(double bytes) {
  const char* unit = " B";
  for (const char* larger : {" KB", " MB", " GB"}) {
    if (std::abs(bytes) < 1024) break;
    bytes /= 1024;
    unit = larger;
  }
  return fmt::format("{:.{}f}{}", bytes, std::abs(bytes) < 10 ? 2 : std::abs(bytes) < 100 ? 1 : 0, unit);
}

}  // namespace

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  statm >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

Result<std::string> MemoryReport(BenchSession& session, int64_t initialisation, uint64_t user,
                                 int64_t after) {
  const auto buffers = static_cast<double>(user);
  std::vector<double> amounts{static_cast<double>(initialisation), buffers,
                              static_cast<double>(after) - buffers};
  DYNAMICCL_CHECK_OK(session.MaxOverRanks(amounts));
  return fmt::format("# {:<20} : Initialization {} | User-Allocated {} | Collective {} | Total  {}\n",
                     "Resident memory", Amount(amounts[0]), Amount(amounts[1]), Amount(amounts[2]),
                     Amount(amounts[0] + amounts[1] + amounts[2]));
}

}  // namespace dynamiccl
