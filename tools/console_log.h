// SPDX-License-Identifier: Apache-2.0
// Messages of the programs on standard error. They go through spdlog: after StartConsoleLog(), call
// spdlog::info("...").
#pragma once

#include <string>

namespace dynamiccl {

// Makes spdlog write lines of the form "dynamiccl: text" to standard error. Colours appear only on a terminal
// and without NO_COLOR. Call it once, at the start of main.
void StartConsoleLog();

// True if `descriptor` is a terminal on which colour is welcome: NO_COLOR is unset or empty
// (https://no-color.org).
bool ColorWelcome(int descriptor);

}  // namespace dynamiccl
