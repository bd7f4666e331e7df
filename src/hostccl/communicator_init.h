// SPDX-License-Identifier: Apache-2.0
// Making communicators: from a unique id, or from another communicator. The functions are collective and
// block; communicator_api.h decides on which thread they run.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/hostccl/communicator.h"

namespace dynamiccl::hostccl {

// The result of an NCCL call and the text for the log: from an error of hostccl, or from a plugin's own
// result.
struct InitError {
  InitError(ncclResult_t given, std::string text) : result(given), message(std::move(text)) {}
  InitError(const Error& error);  // NOLINT(google-explicit-constructor): errors become it on the way out

  ncclResult_t result = ncclInternalError;
  std::string message;
};

using InitResult = tl::expected<std::shared_ptr<Communicator>, InitError>;

// Makes a new id and starts the thread that serves its rendezvous in this process. Bytes 40 to 127 are zero,
// as in NCCL; the interposer writes into them.
Result<ncclUniqueId> MakeUniqueId();

// Arguments with which one rank joins a new communicator.
struct InitRequest {
  int n_ranks = 1;
  int rank = 0;
  int device = 0;
  ncclUniqueId id{};
  ncclConfig_t config = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
};

// Makes a communicator. Collective over the ranks of the id. Ignores bytes 40 to 127 of the id.
InitResult InitCommunicator(const InitRequest& request);

// Ends the service of an id that nobody will use, because a communicator made from several ids meets at the
// first of them.
Status RetireUniqueId(const ncclUniqueId& id);

// One rank's arguments of ncclCommSplit.
struct SplitRequest {
  int color = NCCL_SPLIT_NOCOLOR;
  int key = 0;
  ncclConfig_t config = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
};

// Collective over the parent. Returns null for NCCL_SPLIT_NOCOLOR.
InitResult SplitCommunicator(Communicator& parent, const SplitRequest& request);

// Collective over the ranks of the parent that are not in `excluded` (ascending). The excluded ranks may be
// dead.
InitResult ShrinkCommunicator(Communicator& parent, std::span<const int> excluded,
                              const ncclConfig_t& config);

// Collective over the parent. Returns on all ranks the id that exactly one of them passes as `mine`; the
// others pass null.
Result<ncclUniqueId> ShareUniqueId(Communicator& parent, const ncclUniqueId* mine);

}  // namespace dynamiccl::hostccl
