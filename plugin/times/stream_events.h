// SPDX-License-Identifier: Apache-2.0
// Events in the program's streams, by which the device says when it reached a call.
#pragma once

#include <cstdint>
#include <optional>

#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

// An event of CUDA or of hostccl; null: none.
using StreamEvent = void*;

// The functions for CUDA's events, or for hostccl's. They have no state. Any thread may call them if its
// current context is that of the stream, which is so wherever a program calls NCCL. Failures are returned as
// values, because the program's device may be gone.
class StreamEvents {
 public:
  virtual ~StreamEvents() = default;
  // Returns null if no event can be made.
  virtual StreamEvent Make() const = 0;
  virtual void Free(StreamEvent event) const = 0;
  // Puts the event behind all work in the stream, which must not be under capture. Returns false if it
  // cannot.
  virtual bool Record(StreamEvent event, cudaStream_t stream) const = 0;
  // Returns whether the stream has reached a recorded event; nothing if that cannot be known any more.
  virtual std::optional<bool> Reached(StreamEvent event) const = 0;
  // Returns the nanoseconds from one reached event to another; nothing if they are not known.
  virtual std::optional<int64_t> Between(StreamEvent earlier, StreamEvent later) const = 0;
};

}  // namespace dynamiccl
