// SPDX-License-Identifier: Apache-2.0
#include "src/base/shared_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace dynamiccl {
namespace {

TEST(SharedMemory, IsSeenThroughASecondMapping) {
  auto first = SharedMemory::Create("test", 4096);
  ASSERT_TRUE(first) << first.error().message;
  auto second = SharedMemory::FromFd(UniqueFd(::dup(first->fd())), 4096);
  ASSERT_TRUE(second);
  first->data()[17] = std::byte{42};
  EXPECT_EQ(second->data()[17], std::byte{42});
}

TEST(SharedMemory, CannotBeShrunkUnderUs) {
  auto memory = SharedMemory::Create("test", 4096);
  ASSERT_TRUE(memory);
  EXPECT_NE(::ftruncate(memory->fd(), 0), 0) << "a peer could cause SIGBUS";
}

TEST(SharedMemory, RefusesAnObjectThatIsTooShort) {
  auto memory = SharedMemory::Create("test", 4096);
  ASSERT_TRUE(memory);
  const auto longer = SharedMemory::FromFd(UniqueFd(::dup(memory->fd())), 8192);
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().kind, ErrorKind::kInvalidArgument);
}

TEST(SharedMemory, RefusesMemoryThatAPeerCouldShorten) {
  UniqueFd unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), 4096), 0);
  EXPECT_FALSE(SharedMemory::FromFd(std::move(unsealed), 4096));
  char name[] = "/tmp/dynamiccl_test_XXXXXX";
  UniqueFd file(::mkstemp(name));
  ::unlink(name);
  ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
  EXPECT_FALSE(SharedMemory::FromFd(std::move(file), 4096));
}

}  // namespace
}  // namespace dynamiccl
