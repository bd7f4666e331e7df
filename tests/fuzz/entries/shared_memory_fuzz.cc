// SPDX-License-Identifier: Apache-2.0
// Reads shared memory that a damaged rank of the same machine wrote. Input: byte 0 = 0: a segment of {u32
// bytes, u8 ranks, u8 seals} is attached. 1: a peer hands over memory of {u32 bytes, u8 seals} as the buffer
// of a reference. Otherwise: references (BufferRef) to a buffer of another process are mapped and read.
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <span>
#include <thread>

#include "src/transport/peer_buffers.h"
#include "src/transport/process_identity.h"
#include "src/transport/segment.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace dynamiccl;

// The time limit of each step, 10 s. A step that takes longer never ends.
Deadline InTime() {
  return Deadline::After(10'000);
}

UniqueFd Memory(uint32_t bytes, uint8_t seals) {
  UniqueFd fd(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  fuzz::Require(::ftruncate(fd.get(), bytes) == 0, "a file of that size");
  if (seals % 8 != 0) (void)::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return fd;
}

void AttachSegment(ByteReader& input) {
  const auto bytes = input.Get<uint32_t>();
  const int n_ranks = 1 + input.Get<uint8_t>() % 4;
  const auto segment = Segment::Attach(Memory(bytes, input.Get<uint8_t>()), n_ranks);
  if (!segment) return;
  // The last fifo and link state that a rank may touch must lie inside the segment.
  (void)(*segment)->fifo(n_ranks - 1, kFifosPerPeer - 1).simple.tail.load();
  (void)(*segment)->link_state(LinkStates(n_ranks) - 1);
}

void Touch(PeerBuffers& buffers, const BufferRef& ref) {
  // A rank trusts references to memory of its own process: a peer that could forge them could also trace the
  // process.
  if (ref.process == ProcessToken()) return;
  const auto data = buffers.Map(ref, InTime());
  if (!data || ref.bytes == 0) return;
  (void)*static_cast<const volatile std::byte*>(*data);
  (void)*static_cast<const volatile std::byte*>(*data + ref.bytes - 1);
}

// Plays the peer of descriptor_server.h that answers with memory.
void TakeGrant(ByteReader& input) {
  static uint64_t process = 0x5eed'0000'0000'0000;
  const auto listener = ListenAbstract(fmt::format("hostccl-memory-{:016x}", ++process));
  fuzz::Require(listener.has_value(), "a socket listens");
  const UniqueFd memory = Memory(input.Get<uint32_t>() % (1 << 24), input.Get<uint8_t>());
  const auto granted = input.Get<uint64_t>();
  BufferRef ref{.process = process, .allocation = 1, .offset = input.Get<uint64_t>()};
  ref.bytes = input.Get<uint64_t>();
  std::thread server([&] {
    const auto socket = Accept(listener->get(), InTime());
    fuzz::Require(socket.has_value(), "a rank asks");
    uint64_t allocation = 0;
    (void)ReceiveAll(socket->get(), std::as_writable_bytes(std::span(&allocation, 1)), InTime());
    (void)SendDescriptor(socket->get(), memory.get());
    (void)SendAll(socket->get(), std::as_bytes(std::span(&granted, 1)), InTime());
  });
  PeerBuffers buffers;
  Touch(buffers, ref);
  server.join();
}

// Starts a process that owns a shared buffer and hands it to every process that asks. It ends with this
// process.
BufferRef BufferOfAnotherProcess() {
  int ends[2];
  fuzz::Require(::pipe2(ends, O_CLOEXEC) == 0, "a pipe");
  if (::fork() == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const BufferRef ref = DescribeBuffer(*AllocateSharedBuffer(8192), 8192);
    if (::write(ends[1], &ref, sizeof(ref)) != sizeof(ref)) ::_exit(1);
    // A program that reads the output of this process must not wait for the child.
    ::close(STDOUT_FILENO);
    ::close(STDERR_FILENO);
    for (;;) ::pause();
  }
  ::close(ends[1]);
  BufferRef ref;
  fuzz::Require(::read(ends[0], &ref, sizeof(ref)) == sizeof(ref), "another process tells of its buffer");
  ::close(ends[0]);
  return ref;
}

void ReadBuffers(ByteReader& input) {
  static const BufferRef true_ref = BufferOfAnotherProcess();
  PeerBuffers buffers;
  while (input.ok() && input.remaining() > 0) {
    const auto options = input.Get<uint8_t>();
    auto ref = input.Get<BufferRef>();
    if ((options & 1) != 0) ref.process = true_ref.process;
    if ((options & 2) != 0) ref.allocation = true_ref.allocation;
    if ((options & 4) != 0) ref.offset %= 8200;
    if ((options & 8) != 0) ref.bytes %= 8200;
    Touch(buffers, ref);
    buffers.DropFreed();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader input(fuzz::BytesOf(data, size));
  const auto which = input.Get<uint8_t>();
  if (which == 0) {
    AttachSegment(input);
  } else if (which == 1) {
    TakeGrant(input);
  } else {
    ReadBuffers(input);
  }
  return 0;
}
