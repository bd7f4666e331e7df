// SPDX-License-Identifier: Apache-2.0
// A loaded tuner plugin. A process has one library, found by NCCL's rules (plugin_library.h). hostccl uses
// the newest form of the interface, whatever version the library exports (src/nccl_plugin/tuner_interface.h).
#pragma once

#include <memory>

#include "src/hostccl/plugin_host/plugin_library.h"
#include "src/nccl_plugin/tuner_interface.h"

namespace dynamiccl::hostccl {

// Returns the process's plugin, shared by its communicators; null without one. A first search that finds
// nothing is final for the process, as in NCCL. The library is closed with the last owner. Any thread.
std::shared_ptr<const TunerInterface> AcquireTuner();

}  // namespace dynamiccl::hostccl
