// SPDX-License-Identifier: Apache-2.0
#include "tests/real_nccl/asked_tables.h"

#include <fstream>
#include <iterator>
#include <sstream>

namespace dynamiccl::real_nccl {
namespace {

AskedTable ReadTable(std::istringstream& words) {
  int function = 0, algorithms = 0, protocols = 0;
  AskedTable table;
  words >> function >> table.bytes >> table.pipe_ops >> table.registered >> algorithms >> protocols;
  table.collective = static_cast<Collective>(function);
  table.costs.assign(std::istream_iterator<float>(words), {});
  return table;
}

}  // namespace

CollectiveConfig AskedTable::Cheapest() const {
  CollectiveConfig best = kLeaveNcclAlone;
  float best_cost = -1;
  for (size_t cell = 0; cell < costs.size(); ++cell) {
    if (costs[cell] < 0 || (best_cost >= 0 && costs[cell] >= best_cost)) continue;
    best_cost = costs[cell];
    best = {static_cast<Algorithm>(cell / kProtocols), static_cast<Protocol>(cell % kProtocols), 0};
  }
  return best;
}

AskedTables ReadAskedTables(const std::string& path) {
  AskedTables asked;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    if (!line.starts_with("constants")) {
      asked.tables.push_back(ReadTable(words));
      continue;
    }
    words.ignore(static_cast<std::streamsize>(std::string("constants").size()));
    asked.constants.assign(std::istream_iterator<double>(words), {});
  }
  return asked;
}

}  // namespace dynamiccl::real_nccl
