// SPDX-License-Identifier: Apache-2.0
// Helpers for ranks of this process on emulated links: a topology of their own, the booked bytes, and elapsed
// time.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>

#include "src/base/clock.h"
#include "src/transport/link_client.h"

namespace dynamiccl::testing {

// A topology file for the ranks that start during the lifetime of this object.
class TopologyScope {
 public:
  explicit TopologyScope(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / ("shaped_job_" + std::to_string(::getpid()))) {
    std::ofstream(path_) << text;
    ::setenv("HOSTCCL_TOPOLOGY", path_.c_str(), 1);
  }
  ~TopologyScope() {
    ::unsetenv("HOSTCCL_TOPOLOGY");
    std::filesystem::remove(path_);
  }

 private:
  std::filesystem::path path_;
};

// The time of the first Note of any rank. Nothing that a rank does after its Note can be earlier.
class FirstStart {
 public:
  void Note() {
    int64_t unset = 0;
    first_ns_.compare_exchange_strong(unset, MonotonicNanoseconds());
  }
  double MsSince() const { return static_cast<double>(MonotonicNanoseconds() - first_ns_) / 1e6; }

 private:
  std::atomic<int64_t> first_ns_{0};
};

inline LinkAnswer Ask(const LinkRequest& request) {
  const auto answer = AskForLinks(::getpid(), request);
  EXPECT_TRUE(answer.has_value()) << answer.error().message;
  return answer.value_or(LinkAnswer{});
}

// Returns the bytes booked on all links. Rank 0 must still have its communicator.
inline uint64_t BytesOnLinks() {
  const LinkAnswer answer = Ask({});
  EXPECT_EQ(answer.jobs.size(), 1u);
  if (answer.jobs.empty()) return 0;
  const auto& rows = answer.jobs.front().rows;
  return std::accumulate(rows.begin(), rows.end(), uint64_t{0},
                         [](uint64_t sum, const LinkRow& row) { return sum + row.bytes; });
}

}  // namespace dynamiccl::testing
