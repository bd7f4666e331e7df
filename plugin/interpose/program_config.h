// SPDX-License-Identifier: Apache-2.0
// Reads what a program configures itself: a communicator by the ncclConfig_t passed to its init, a single
// call by an ncclCollConfig_t (ncclAllReduceConfig and similar functions, NCCL 2.31 and later). Both
// structures grow with the releases, and the program, NCCL and this object may be of different releases. So
// each is read only as far as its `size` allows, and a copy is as long as the program's.
#pragma once

#include <memory>
#include <string>

#include "src/decision/override_rules.h"
#include "src/nccl_abi/nccl_api.h"

namespace dynamiccl {

// Returns the int at `offset` of the program's config; NCCL_CONFIG_UNDEF_INT if it is not set or lies beyond
// the config's end.
int MemberOf(const ncclConfig_t& config, size_t offset);

// Returns true if calls on the communicator return only after NCCL has accepted them. True if the config does
// not say.
bool IsBlocking(const ncclConfig_t& config);

// Returns the bounds that the program has set, for example "minCTAs=2 maxCTAs=8 nvlsCTAs=4"; empty: none.
std::string PinnedCtas(const ncclConfig_t& config);

// Returns the bounds on channels that the program itself has set. `config` may be null.
CtaBounds CtasOf(const ncclConfig_t* config);

// Returns why bounds cannot be set in the config; empty if they can. Without a config they can.
std::string WhyWithoutCtas(const ncclConfig_t* config);

// Returns true if the program itself chooses algorithm, protocol or channels of a call; DynamICCL then
// chooses nothing. `config` may be null. Runs for each call with a configuration; allocates nothing.
bool ChoosesItself(const ncclCollConfig_t* config) noexcept;

// A copy of a config that owns its texts, because the program's texts may be gone when the copy is used
// again. A null config becomes one that sets nothing. Only for configs for which WhyWithoutCtas is empty.
class ConfigCopy {
 public:
  explicit ConfigCopy(const ncclConfig_t* given);

  // Sets those bounds that the program left undefined.
  void Add(const CtaBounds& ctas);
  // Returns the copy. It is not const, because NCCL's functions take a pointer to non-const. They only read
  // it.
  ncclConfig_t* get() const { return reinterpret_cast<ncclConfig_t*>(bytes_.get()); }

 private:
  void Own(size_t offset, std::string& text);

  std::unique_ptr<std::byte[]> bytes_;
  std::string net_name_, communicator_name_;
};

}  // namespace dynamiccl
