// SPDX-License-Identifier: Apache-2.0
// The lifetime of this process's runtime: from its first NCCL call to its end, and never in a forked child.
#pragma once

namespace dynamiccl {

class ProcessRuntime;

// Any thread may call these functions, also before main and while the process ends. None throws: if the
// runtime could not be made, mostly because memory is short, all behave as if there were none, and calls pass
// through. The runtime is never destroyed, because threads may still be inside NCCL while the process ends.
class RuntimeInstance {
 public:
  // Returns the runtime, which the first call makes. Null if it could not be made, and in a forked child: the
  // child has none of its parent's threads and communicators, so it passes everything through.
  static ProcessRuntime* Get() noexcept;
  // Returns the runtime if it exists, else null; never makes one.
  static ProcessRuntime* GetIfCreated() noexcept;
  // Returns true if the runtime was requested before, even if it could not be made.
  static bool WasRequested() noexcept;
  // Like Get, but returns null unless calls are watched: in mode observe with a trace or metrics, or in a
  // mode that chooses. Each call asks this first: two atomic loads.
  static ProcessRuntime* GetIfWatching() noexcept;
  // Registers ProcessRuntime::SaveAtExit to run at the end of the process. Call it once, after the files that
  // close at exit have registered themselves: exit runs handlers in reverse order.
  static void SaveAtExit() noexcept;
};

}  // namespace dynamiccl
