// SPDX-License-Identifier: Apache-2.0
// What a program configures itself: a communicator by the ncclConfig_t that it initialises it with, a single
// call by an ncclCollConfig_t (ncclAllReduceConfig and its like, NCCL 2.31 and later). Both structures grow
// with the releases, and programs, NCCL and this object are of different ones. So each is read only as far as
// its `size` says, and a copy is as long as the program's.
#pragma once

#include <memory>
#include <string>

#include "src/decision/override_rules.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

// The int at `offset` of the program's config; NCCL_CONFIG_UNDEF_INT when it is not set or lies beyond the
// config's end.
int MemberOf(const ncclConfig_t& config, size_t offset);

// Whether calls on the communicator return only when NCCL has taken them. True where the config does not say.
bool IsBlocking(const ncclConfig_t& config);

// "minCTAs=2 maxCTAs=8 nvlsCTAs=4": those that the program has set; empty: none.
std::string PinnedCtas(const ncclConfig_t& config);

// Bounds on the channels that the program has set itself. `config` may be null.
CtaBounds CtasOf(const ncclConfig_t* config);

// Why bounds cannot be set in it; empty where they can. Without a config they can.
std::string WhyWithoutCtas(const ncclConfig_t* config);

// Whether the program chooses algorithm, protocol or channels of a call: then nothing is chosen for it.
// `config` may be null. On the path of such calls; allocates nothing.
bool ChoosesItself(const ncclCollConfig_t* config) noexcept;

// A copy that owns the names in it, since the program's may be gone when it is used again. A null config
// becomes one that sets nothing. Only of configs of which WhyWithoutCtas is empty.
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
  std::string net_name_, communicator_name_;
};

}  // namespace dynamiccl
