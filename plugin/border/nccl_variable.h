// SPDX-License-Identifier: Apache-2.0
// Reads NCCL_* variables as NCCL itself does. If this object overlooked a pin that NCCL reads, the rank would
// attest something false.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dynamiccl {

// Returns the value of `name` from the environment, else from NCCL's configuration files; nothing if neither
// sets it. The first file is the one that NCCL_CONF_FILE names; without that variable, ~/.nccl.conf. The
// second is /etc/nccl.conf. A line is "NAME=value", or a comment that begins with '#'. The first line that
// sets `name` counts. Each call reads the files anew, so call this only at initialisation.
std::optional<std::string> NcclVariable(const std::string& name);

// Returns the NCCL_CTA_POLICY_* value of ncclConfig_t for a text of the variable NCCL_CTA_POLICY: "0", "1",
// "2", or DEFAULT, EFFICIENCY and ZERO separated by '|', in any case (NCCL's src/init.cc,
// getEnvCtaPolicyOnce). Nothing if no word of the text is known; NCCL then uses the program's configuration.
std::optional<int> ParseCtaPolicy(std::string_view text);

}  // namespace dynamiccl
