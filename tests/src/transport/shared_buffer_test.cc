// SPDX-License-Identifier: Apache-2.0
// Shared buffers between processes. They are mapped, freed while mapped, inherited by fork(), and left behind
// by an owner that died.
#include "src/transport/shared_buffer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>
#include <thread>

#include "src/transport/descriptor_server.h"
#include "src/transport/peer_buffers.h"
#include "src/transport/process_identity.h"
#include "src/transport/socket.h"

namespace dynamiccl {
namespace {

constexpr size_t kBytes = (size_t{3} << 20) + 12345;

Deadline Soon() {
  return Deadline::After(10'000);
}

// The test's end of a socket pair. A child process has the other end.
class Peer {
 public:
  explicit Peer(const std::function<void(Peer&)>& body) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    pid_ = ::fork();
    socket_ = UniqueFd(ends[pid_ == 0 ? 1 : 0]);
    ::close(ends[pid_ == 0 ? 0 : 1]);
    if (pid_ != 0) return;
    body(*this);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  ~Peer() { EXPECT_TRUE(Join()) << "the child's part failed, see above"; }

  template <typename T>
  void Tell(const T& value) {
    EXPECT_TRUE(SendAll(socket_.get(), std::as_bytes(std::span(&value, 1)), Soon()));
  }
  template <typename T = char>
  T Hear() {
    T value{};
    EXPECT_TRUE(ReceiveAll(socket_.get(), std::as_writable_bytes(std::span(&value, 1)), Soon()));
    return value;
  }
  void Kill() {
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
  }

 private:
  bool Join() {
    int status = 0;
    return pid_ <= 0 ||
           (::waitpid(pid_, &status, 0) == pid_ && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }

  pid_t pid_ = -1;
  UniqueFd socket_;
};

std::byte* Allocate(size_t bytes) {
  const auto made = AllocateSharedBuffer(bytes);
  EXPECT_TRUE(made.has_value()) << (made ? "" : made.error().message);
  return static_cast<std::byte*>(made.value_or(nullptr));
}

TEST(SharedBuffer, IsZeroFilledPageAlignedAndFreedOnce) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4096}, kBytes}) {
    std::byte* const data = Allocate(bytes);
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 4096, 0U);
    EXPECT_TRUE(std::all_of(data, data + bytes, [](std::byte b) { return b == std::byte{0}; }));
    if (bytes > 0) std::memset(data, 7, bytes);
    EXPECT_TRUE(FreeSharedBuffer(data).has_value());
    const Status again = FreeSharedBuffer(data);
    ASSERT_FALSE(again.has_value());
    EXPECT_EQ(again.error().kind, ErrorKind::kInvalidArgument);
  }
}

TEST(SharedBuffer, OnlyRangesWithinOneAllocationAreShared) {
  std::byte* const data = Allocate(kBytes);
  const BufferRef inside = DescribeBuffer(data + 100, kBytes - 100);
  EXPECT_TRUE(inside.is_shared());
  EXPECT_EQ(inside.offset, 100U);
  EXPECT_EQ(inside.process, ProcessToken());
  EXPECT_EQ(inside.pid, ::getpid());
  EXPECT_FALSE(DescribeBuffer(data + 100, kBytes + 4096).is_shared());
  EXPECT_FALSE(DescribeBuffer(data - 1, 2).is_shared());
  const int local = 0;
  EXPECT_FALSE(DescribeBuffer(&local, sizeof(local)).is_shared());
  ASSERT_TRUE(FreeSharedBuffer(data).has_value());
  EXPECT_FALSE(DescribeBuffer(data, 1).is_shared());
}

TEST(SharedBuffer, NumbersAreNeverReused) {
  std::byte* const first = Allocate(1);
  const uint64_t number = DescribeBuffer(first, 1).allocation;
  ASSERT_TRUE(FreeSharedBuffer(first).has_value());
  std::byte* const second = Allocate(1);
  EXPECT_GT(DescribeBuffer(second, 1).allocation, number);
  ASSERT_TRUE(FreeSharedBuffer(second).has_value());
}

TEST(SharedBuffer, CannotBeResizedByWhoeverGotTheDescriptor) {
  std::byte* const data = Allocate(kBytes);
  const BufferRef ref = DescribeBuffer(data, kBytes);
  const auto grant = RequestDescriptor(ref.process, ref.allocation, Soon());
  ASSERT_TRUE(grant.has_value()) << grant.error().message;
  EXPECT_NE(::ftruncate(grant->fd.get(), 0), 0);
  EXPECT_NE(::ftruncate(grant->fd.get(), 1 << 30), 0);
  ASSERT_TRUE(FreeSharedBuffer(data).has_value());
  const auto freed = RequestDescriptor(ref.process, ref.allocation, Soon());
  ASSERT_FALSE(freed.has_value());
  EXPECT_EQ(freed.error().kind, ErrorKind::kPeerFailed);
}

TEST(PeerBuffers, ReadAndWriteTheOwnersMemoryUntilItIsFreed) {
  Peer peer([](Peer& test) {
    const auto ref = test.Hear<BufferRef>();
    PeerBuffers buffers;
    const auto mapped = buffers.Map(ref, Soon());
    ASSERT_TRUE(mapped.has_value()) << mapped.error().message;
    EXPECT_EQ(**mapped, std::byte{42});
    (*mapped)[1] = std::byte{43};
    EXPECT_EQ(*buffers.Map(ref, Soon()), *mapped) << "a second look asks nobody";
    test.Tell('w');
    EXPECT_EQ(test.Hear(), 'f');
    EXPECT_EQ(**mapped, std::byte{0}) << "the memory went back to the system at once";
    EXPECT_EQ(buffers.Map(ref, Soon()).error().kind, ErrorKind::kPeerFailed);
    buffers.DropFreed();
    EXPECT_EQ(buffers.mappings(), 0U);
    EXPECT_FALSE(buffers.Map(ref, Soon()).has_value());
  });
  std::byte* const data = Allocate(kBytes);
  data[5000] = std::byte{42};
  peer.Tell(DescribeBuffer(data + 5000, 2));
  EXPECT_EQ(peer.Hear(), 'w');
  EXPECT_EQ(data[5001], std::byte{43});
  ASSERT_TRUE(FreeSharedBuffer(data).has_value());
  peer.Tell('f');
}

TEST(PeerBuffers, KeepWhatADeadOwnerShared) {
  Peer peer([](Peer& test) {
    std::byte* const data = Allocate(kBytes);
    data[0] = std::byte{9};
    test.Tell(DescribeBuffer(data, kBytes));
    std::byte* const other = Allocate(1);
    test.Tell(DescribeBuffer(other, 1));
    test.Hear();  // The child waits until it is killed.
  });
  const auto ref = peer.Hear<BufferRef>();
  const auto never_mapped = peer.Hear<BufferRef>();
  PeerBuffers buffers;
  const auto mapped = buffers.Map(ref, Soon());
  ASSERT_TRUE(mapped.has_value()) << mapped.error().message;
  peer.Kill();
  EXPECT_EQ(**mapped, std::byte{9});
  const auto gone = buffers.Map(never_mapped, Soon());
  ASSERT_FALSE(gone.has_value());
  EXPECT_EQ(gone.error().kind, ErrorKind::kPeerFailed);
}

// Waits until the thread that hands out buffers has started and answers. GCC 12's AddressSanitizer does not
// take its allocator's locks around fork(). A thread that is starting may hold one, and the child's next
// thread would wait for it for ever.
void AwaitServer(std::byte* buffer) {
  const BufferRef ref = DescribeBuffer(buffer, 1);
  ASSERT_TRUE(RequestDescriptor(ref.process, ref.allocation, Soon()).has_value());
}

TEST(SharedBuffer, AChildOfForkKeepsTheMemoryButDoesNotServeIt) {
  std::byte* const data = Allocate(kBytes);
  data[0] = std::byte{1};
  AwaitServer(data);
  Peer child([&](Peer& test) {
    EXPECT_EQ(data[0], std::byte{1});
    const BufferRef inherited = DescribeBuffer(data, kBytes);
    EXPECT_FALSE(inherited.is_shared());
    EXPECT_TRUE(FreeSharedBuffer(data).has_value());
    std::byte* const own = Allocate(10);
    own[0] = std::byte{5};
    test.Tell(DescribeBuffer(own, 10));
    test.Hear();
  });
  const auto ref = child.Hear<BufferRef>();
  EXPECT_NE(ref.process, ProcessToken());
  PeerBuffers buffers;
  const auto mapped = buffers.Map(ref, Soon());
  ASSERT_TRUE(mapped.has_value()) << mapped.error().message;
  EXPECT_EQ(**mapped, std::byte{5});
  child.Tell('e');
  EXPECT_EQ(data[0], std::byte{1}) << "the child's free does not touch the parent's buffer";
  const BufferRef own = DescribeBuffer(data, kBytes);
  EXPECT_TRUE(RequestDescriptor(own.process, own.allocation, Soon()).has_value());
  ASSERT_TRUE(FreeSharedBuffer(data).has_value());
}

TEST(PeerBuffers, PrivateMemoryIsCopiedWhereTheSystemAllowsIt) {
  uint64_t value[2] = {7, 8};
  Peer child([&](Peer& test) {
    value[0] = 0x1234567890abcdef;  // The child changes only its own copy.
    test.Tell(DescribeBuffer(value, sizeof(value)));
    EXPECT_EQ(test.Hear(), 'e');
    EXPECT_TRUE(value[1] == 8 || value[1] == 99);
  });
  const auto ref = child.Hear<BufferRef>();
  EXPECT_FALSE(CanReadProcess(ref.pid, ref.address, 7)) << "another value than expected";
  if (CanReadProcess(ref.pid, ref.address, 0x1234567890abcdef)) {
    uint64_t copy = 0;
    EXPECT_TRUE(ReadPeerMemory(ref, 8, &copy, sizeof(copy)).has_value());
    EXPECT_EQ(copy, 8U);
    const uint64_t wanted = 99;
    EXPECT_TRUE(WritePeerMemory(ref, 8, &wanted, sizeof(wanted)).has_value());
    EXPECT_TRUE(ReadPeerMemory(ref, 8, &copy, sizeof(copy)).has_value());
    EXPECT_EQ(copy, 99U);
    EXPECT_EQ(value[1], 8U);
  }
  child.Tell('e');
}

TEST(PeerBuffers, AProcessThatIsGoneIsAPeerFailure) {
  Peer child([](Peer& test) {
    test.Tell(DescribeBuffer(&test, 8));
    test.Hear();
  });
  const auto ref = child.Hear<BufferRef>();
  child.Kill();
  EXPECT_FALSE(CanReadProcess(ref.pid, ref.address, 0));
  uint64_t copy = 0;
  const Status read = ReadPeerMemory(ref, 0, &copy, sizeof(copy));
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().kind, ErrorKind::kPeerFailed) << read.error().message;
}

// Returns a rank's result if a peer hands over memory of `bytes` as a buffer of `granted` bytes.
Result<std::byte*> MapGranted(size_t bytes, bool sealed, uint64_t granted) {
  static uint64_t process = 0x9a27'0000'0000'0000;
  const auto listener = ListenAbstract(fmt::format("hostccl-memory-{:016x}", ++process));
  UniqueFd memory(::memfd_create("granted", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(memory.get(), static_cast<off_t>(bytes)), 0);
  if (sealed) ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  std::thread peer([&] {
    const auto socket = Accept(listener->get(), Soon());
    uint64_t allocation = 0;
    EXPECT_TRUE(ReceiveAll(socket->get(), std::as_writable_bytes(std::span(&allocation, 1)), Soon()));
    EXPECT_TRUE(SendDescriptor(socket->get(), memory.get()));
    EXPECT_TRUE(SendAll(socket->get(), std::as_bytes(std::span(&granted, 1)), Soon()));
  });
  PeerBuffers buffers;
  const BufferRef ref{.process = process, .allocation = 1, .offset = 4096, .bytes = 4096};
  const auto mapped = buffers.Map(ref, Soon());
  if (mapped) (void)*static_cast<volatile std::byte*>(*mapped + ref.bytes - 1);
  peer.join();
  return mapped;
}

TEST(PeerBuffers, BelieveNoDamagedGrant) {
  const auto whole = MapGranted(12288, true, 8192);
  EXPECT_TRUE(whole.has_value()) << (whole ? "" : whole.error().message);
  EXPECT_FALSE(MapGranted(12288, false, 8192).has_value()) << "its owner could shorten it";
  EXPECT_FALSE(MapGranted(8192, true, 8192).has_value()) << "no page for the trailer";
  EXPECT_FALSE(MapGranted(12288, true, 8191).has_value());
  EXPECT_FALSE(MapGranted(12288, true, uint64_t{1} << 40).has_value());
  EXPECT_FALSE(MapGranted(12288, true, UINT64_MAX).has_value());
  EXPECT_FALSE(MapGranted(12288, true, 4096).has_value()) << "the reference lies beyond it";
}

// The message carries two descriptors. The receiver must not leave the second one open.
TEST(Socket, TakesOneDescriptorOfAMessage) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  char mark = 'd';
  iovec data{&mark, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(2 * sizeof(int));
  std::memcpy(CMSG_DATA(header), ends, 2 * sizeof(int));
  ASSERT_EQ(::sendmsg(ends[0], &message, 0), 1);
  const int next = ::dup(ends[0]);
  ::close(next);
  {
    const auto taken = ReceiveDescriptor(ends[1], Soon());
    const int after = ::dup(ends[0]);
    EXPECT_EQ(after, taken ? next + 1 : next);
    ::close(after);
  }
  for (const int end : ends) ::close(end);
}

}  // namespace
}  // namespace dynamiccl
