// SPDX-License-Identifier: Apache-2.0
// The option --collective of commands that read results of other tools.
#pragma once

#include <CLI/App.hpp>
#include <optional>

#include "src/collective/collective.h"

namespace dynamiccl {

// Adds the option, which writes to `collective`. An unknown name is a usage error.
inline void AddCollectiveOption(CLI::App& app, std::optional<Collective>& collective) {
  const auto parse = [&collective](const std::string& name) {
    collective = ParseCollective(name);
    if (!collective)
      throw CLI::ValidationError("--collective", "no collective '" + name + "': AllReduce, AllGather, ...");
  };
  app.add_option_function<std::string>("--collective", parse,
                                       "Collective of results that do not name their test: AllReduce, ...");
}

}  // namespace dynamiccl
