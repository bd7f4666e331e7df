// SPDX-License-Identifier: Apache-2.0
// When this process has a runtime: from its first NCCL call until it ends, and never in a forked child.
#pragma once

namespace dynamiccl {

class ProcessRuntime;

// Any thread may call any of these, also before main and while the process ends. None throws: where the
// runtime could not be made, for want of memory mostly, all answer as if there were none, and calls pass
// through. The runtime is never destroyed, since threads may still be inside NCCL while the process ends.
class ProcessLife {
 public:
  // The runtime, which the first call makes. Null when it could not be made, and in a forked child: the child
  // has none of its parent's threads and communicators, so it passes everything through.
  static ProcessRuntime* Runtime() noexcept;
  // The runtime as far as there is one; makes none.
  static ProcessRuntime* Existing() noexcept;
  // Whether somebody has asked for the runtime already, even if it could not be made.
  static bool WasTried() noexcept;
  // As Runtime, but null unless calls are of interest: mode observe with a trace or metrics, or a mode that
  // chooses. This is what a call asks first: two atomic loads.
  static ProcessRuntime* Watching() noexcept;
  // Has ProcessRuntime::SaveAtExit called when the process ends. Called once, after
  // the files that close at exit have registered themselves: exit runs in reverse order.
  static void SaveAtExit() noexcept;
};

}  // namespace dynamiccl
