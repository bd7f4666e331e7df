// SPDX-License-Identifier: Apache-2.0
// NCCL_* variables as NCCL itself reads them. This object must see what NCCL sees: a pin that only NCCL knows
// of would make a rank attest something false.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dynamiccl {

// The value of `name`: from the environment, else from NCCL's configuration files; nothing when it is set
// nowhere. The files are NCCL_CONF_FILE, or ~/.nccl.conf without that variable, then /etc/nccl.conf. They
// hold lines "NAME=value"; '#' begins a comment line; the first line that sets the name counts. Files are
// read anew at each call, so this is for initialisation only.
std::optional<std::string> NcclVariable(const std::string& name);

// The NCCL_CTA_POLICY_* value of ncclConfig_t that a text of NCCL_CTA_POLICY stands for: "0", "1", "2", or
// DEFAULT, EFFICIENCY and ZERO with '|' between, in any case (NCCL's src/init.cc, getEnvCtaPolicyOnce).
// Nothing when no word of the text is known: NCCL then goes by the program's configuration.
std::optional<int> ParseCtaPolicy(std::string_view text);

}  // namespace dynamiccl
