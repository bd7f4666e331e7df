// SPDX-License-Identifier: Apache-2.0
// Draws the token, and draws it again after fork(). See process_token.h.
#include "src/transport/process_token.h"

#include <pthread.h>

#include <atomic>
#include <span>

#include "src/transport/socket.h"

namespace dynamiccl {
namespace {

std::atomic<uint64_t> token;

void DrawToken() {
  uint64_t drawn = 0;
  FillRandom(std::as_writable_bytes(std::span(&drawn, 1)));
  token.store(drawn, std::memory_order_release);
}

}  // namespace

uint64_t ProcessToken() {
  [[maybe_unused]] static const bool drawn = [] {
    DrawToken();
    return ::pthread_atfork(nullptr, nullptr, DrawToken) == 0;
  }();
  return token.load(std::memory_order_acquire);
}

}  // namespace dynamiccl
