// SPDX-License-Identifier: Apache-2.0
// A copy of the ncclConfig_t that a program initialises a communicator with. Programs and libraries are of
// different releases, so it is as long as the program's, and says so.
#pragma once

#include <memory>
#include <string>

#include "src/decision/override_rules.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

// A member of the program's config, which may be shorter than ours; NCCL_CONFIG_UNDEF_INT: not set.
int MemberOf(const ncclConfig_t& config, size_t offset);

// Bounds on the channels that the program has set itself.
CtaBounds CtasOf(const ncclConfig_t* config);

// Why bounds cannot be set in it; empty where they can. Without a config they can.
std::string WhyWithoutCtas(const ncclConfig_t* config);

// Only of configs of which WhyWithoutCtas is empty; one that sets nothing where there is none.
class ConfigCopy {
 public:
  explicit ConfigCopy(const ncclConfig_t* given);

  // Sets what the program has left undefined.
  void Add(const CtaBounds& ctas);
  // NCCL's functions take it as theirs to write to, but read it only.
  ncclConfig_t* get() const { return reinterpret_cast<ncclConfig_t*>(bytes_.get()); }

 private:
  void Own(size_t offset, std::string& text);

  std::unique_ptr<std::byte[]> bytes_;
  std::string net_name_, communicator_name_;  // the program's may be gone when this copy is used again
};

}  // namespace dynamiccl
