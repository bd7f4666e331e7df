// SPDX-License-Identifier: Apache-2.0
#include "tests/zero_workloads/counted_traffic.h"

#include <gtest/gtest.h>

#include <fstream>

namespace dynamiccl::zero {

std::vector<TrafficByFunction> CountTraffic(int ranks, const std::vector<std::string>& arguments,
                                            std::map<std::string, std::string> environment) {
  const TemporaryFolder folder;
  environment["COUNT_NCCL_FILE"] = (folder / "count").string();
  TrainSmall(ranks, arguments, environment, COUNT_NCCL_LIBRARY);
  std::vector<TrafficByFunction> counted;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "")) {
    TrafficByFunction traffic;
    std::ifstream file(entry.path());
    std::string function;
    for (Traffic one; file >> function >> one.calls >> one.elements;) traffic[function] = one;
    counted.push_back(traffic);
  }
  EXPECT_EQ(counted.size(), static_cast<size_t>(ranks));
  return counted;
}

}  // namespace dynamiccl::zero
