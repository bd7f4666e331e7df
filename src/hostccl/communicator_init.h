// SPDX-License-Identifier: Apache-2.0
// Makes communicators from a unique id or from another communicator. The functions are collective and block;
// communicator_api.h decides on which thread they run.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/hostccl/communicator.h"

namespace dynamiccl::hostccl {

// Says why a communicator could not be made: the result for the program and the text for the log. They come
// from an error of hostccl, or from the result of a plugin.
struct InitError {
  InitError(ncclResult_t given, std::string text) : result(given), message(std::move(text)) {}
  InitError(const Error& error);  // NOLINT(google-explicit-constructor): errors become it on the way out

  ncclResult_t result = ncclInternalError;
  std::string message;
};

using InitResult = tl::expected<std::shared_ptr<Communicator>, InitError>;

// Makes a new unique id and starts the thread that serves its rendezvous in this process. Bytes 40 to 127 of
// the id are zero, as in NCCL; DynamICCL's interposer writes into them.
Result<ncclUniqueId> MakeUniqueId();

// The arguments with which one rank joins a new communicator.
struct InitRequest {
  int n_ranks = 1;
  int rank = 0;
  int device = 0;
  ncclUniqueId id{};
  ncclConfig_t config = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
};

// Makes a communicator. Collective over the ranks of the id. It ignores bytes 40 to 127 of the id.
InitResult InitCommunicator(const InitRequest& request);

// Ends the service of an id that nobody will use: a communicator made from several ids meets at the first of
// them.
Status RetireUniqueId(const ncclUniqueId& id);

// One rank's arguments of ncclCommSplit.
struct SplitRequest {
  int color = NCCL_SPLIT_NOCOLOR;
  int key = 0;
  ncclConfig_t config = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
};

// Makes the communicator of one colour. Collective over the parent. Returns null for NCCL_SPLIT_NOCOLOR.
InitResult SplitCommunicator(Communicator& parent, const SplitRequest& request);

// Makes a communicator without the excluded ranks. Collective over the ranks of the parent that are not in
// `excluded` (ascending). The excluded ranks may be dead.
InitResult ShrinkCommunicator(Communicator& parent, std::span<const int> excluded,
                              const ncclConfig_t& config);

// Collective over the parent. Exactly one rank passes the id as `mine`, and the others pass null. All get the
// id.
Result<ncclUniqueId> ShareUniqueId(Communicator& parent, const ncclUniqueId* mine);

}  // namespace dynamiccl::hostccl
