// SPDX-License-Identifier: Apache-2.0
// Reads memory sizes from made-up files of the kernel. A temporary folder takes the place of the root.
#include "src/base/host_memory.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace dynamiccl {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class HostMemoryTest : public ::testing::Test {
 protected:
  HostMemoryTest() {
    std::string folder = std::filesystem::temp_directory_path() / "dynamiccl-memory-XXXXXX";
    root_ = ::mkdtemp(folder.data());
    File("/proc/meminfo",
         "MemTotal:       8192 kB\nMemFree:        1024 kB\nMemAvailable:   6144 kB\nBuffers:   1 kB\n");
  }
  ~HostMemoryTest() override { std::filesystem::remove_all(root_); }

  void File(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void ExpectMiB(uint64_t free, uint64_t total) const {
    const MemorySizes sizes = HostMemory(root_);
    EXPECT_EQ(sizes.free_bytes, free * kMiB);
    EXPECT_EQ(sizes.total_bytes, total * kMiB);
  }
  // Writes a control group of version 2: its limit, its use, and the file caches in that use. Sizes are in
  // MiB.
  void Group(const std::string& path, const std::string& limit, uint64_t used, uint64_t caches) const {
    File("/sys/fs/cgroup" + path + "/memory.max", limit + "\n");
    File("/sys/fs/cgroup" + path + "/memory.current", std::to_string(used * kMiB) + "\n");
    File("/sys/fs/cgroup" + path + "/memory.stat",
         "anon 5\nfile 7\ninactive_file " + std::to_string(caches * kMiB) + "\nactive_file 3\n");
  }

  std::string root_;
};

TEST_F(HostMemoryTest, IsTheHostsWhereNoGroupLimitsIt) {
  ExpectMiB(6, 8);
  File("/proc/self/cgroup", "0::/job\n");
  ExpectMiB(6, 8);
  Group("/job", "max", 1, 0);
  ExpectMiB(6, 8);
}

TEST_F(HostMemoryTest, IsWhatTheGroupHasLeftWithCachesThatCanGo) {
  File("/proc/self/cgroup", "0::/slice/job\n");
  Group("/slice/job", std::to_string(4 * kMiB), 3, 1);
  ExpectMiB(2, 4);
  Group("/slice", std::to_string(5 * kMiB), 4, 0);
  ExpectMiB(1, 5);
  Group("/slice", std::to_string(5 * kMiB), 6, 0);
  ExpectMiB(0, 5);
}

TEST_F(HostMemoryTest, ReadsGroupsOfVersion1) {
  File("/proc/self/cgroup", "4:cpu,cpuacct:/a\n3:memory:/job\nnonsense\n0::/\n");
  File("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", std::to_string(3 * kMiB));
  File("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", std::to_string(2 * kMiB));
  File("/sys/fs/cgroup/memory/job/memory.stat", "cache 1\ntotal_inactive_file 1048576\n");
  ExpectMiB(2, 3);
}

TEST_F(HostMemoryTest, IsUnknownWithoutTheKernelsWord) {
  EXPECT_EQ(HostMemory(root_ + "/none").total_bytes, 0u);
  File("/proc/meminfo", "MemTotal: many kB\n");
  ExpectMiB(0, 0);
}

TEST_F(HostMemoryTest, TheRealHostHasSome) {
  const MemorySizes sizes = HostMemory();
  EXPECT_GT(sizes.free_bytes, 0u);
  EXPECT_GE(sizes.total_bytes, sizes.free_bytes);
}

}  // namespace
}  // namespace dynamiccl
