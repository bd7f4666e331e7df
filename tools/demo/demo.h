// SPDX-License-Identifier: Apache-2.0
// The demo, from recording to report, on one machine: train a model and record its collectives, sweep, train
// the agents, train the model again under the policy, and report.
#pragma once

#include "tools/demo/demo_session.h"

namespace dynamiccl {

// Runs every step and writes demo.json and report.html. When a step fails, the session's result still has the
// findings of the steps before it.
Status RunDemo(DemoSession& session);

// Prints the result's tables on standard output.
void PrintDemo(const DemoResult& result);

}  // namespace dynamiccl
