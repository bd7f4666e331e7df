// SPDX-License-Identifier: Apache-2.0
// A loaded tuner plugin. A process has one library, found by NCCL's rules (plugin_library.h). hostccl uses
// the newest version of the interface, whatever version the library exports
// (src/nccl_plugin/tuner_interface.h).
#pragma once

#include <memory>

#include "src/hostccl/plugin_host/plugin_library.h"
#include "src/nccl_plugin/tuner_interface.h"

namespace dynamiccl::hostccl {

// Returns the process's plugin, which its communicators share; null without a plugin. As in NCCL, a process
// whose first search found no plugin does not search again. `newest` is the newest version of the interface
// that the emulated release knows, the same in each call. The library is closed with its last owner. Any
// thread may call this.
std::shared_ptr<const TunerInterface> AcquireTuner(int newest);

}  // namespace dynamiccl::hostccl
