// SPDX-License-Identifier: Apache-2.0
// What the programs say on standard error while they work, through spdlog: spdlog::info("...") after
// StartTalk().
#pragma once

#include <string>

namespace dynamiccl {

// Lines read "dynamiccl: text"; colours only on a terminal and without NO_COLOR.
void StartTalk();

// Whether `descriptor` is a terminal on which colour is welcome (https://no-color.org).
bool ColorWelcome(int descriptor);

}  // namespace dynamiccl
