// SPDX-License-Identifier: Apache-2.0
// The ranges that NCCL accepts for the members of ncclConfig_t, and the check against them. See
// communicator_config.h.
#include "src/hostccl/communicator_config.h"

#include <algorithm>
#include <climits>
#include <cstring>

namespace dynamiccl::hostccl {
namespace {

// An integer member of ncclConfig_t, and the range of its values.
struct Range {
  const char* name;
  int ncclConfig_t::*member;
  int least;
  int most;
};

// NCCL's MAXCHANNELS.
constexpr int kNcclChannels = 64;

// The ranges that NCCL 2.32 accepts.
constexpr Range kRanges[] = {
    {"blocking", &ncclConfig_t::blocking, 0, 1},
    {"cgaClusterSize", &ncclConfig_t::cgaClusterSize, 0, INT_MAX},
    {"minCTAs", &ncclConfig_t::minCTAs, 1, INT_MAX},
    {"maxCTAs", &ncclConfig_t::maxCTAs, 1, INT_MAX},
    {"splitShare", &ncclConfig_t::splitShare, 0, 1},
    {"collnetEnable", &ncclConfig_t::collnetEnable, 0, 1},
    {"CTAPolicy", &ncclConfig_t::CTAPolicy, 0, NCCL_CTA_POLICY_EFFICIENCY | NCCL_CTA_POLICY_ZERO},
    {"shrinkShare", &ncclConfig_t::shrinkShare, 0, 1},
    {"nvlsCTAs", &ncclConfig_t::nvlsCTAs, 1, INT_MAX},
    {"nChannelsPerNetPeer", &ncclConfig_t::nChannelsPerNetPeer, 1, kNcclChannels},
    {"nvlinkCentricSched", &ncclConfig_t::nvlinkCentricSched, 0, 1},
    {"graphUsageMode", &ncclConfig_t::graphUsageMode, 0, 2},
    {"numRmaCtx", &ncclConfig_t::numRmaCtx, 0, INT_MAX},
    {"maxP2pPeers", &ncclConfig_t::maxP2pPeers, 1, INT_MAX},
    {"graphStreamOrdering", &ncclConfig_t::graphStreamOrdering, 0, 1},
    {"launchOrderImplicit", &ncclConfig_t::launchOrderImplicit, 0, 1},
    {"numRmaSig", &ncclConfig_t::numRmaSig, 0, INT_MAX},
    {"rmaEagerInit", &ncclConfig_t::rmaEagerInit, 0, 1},
    {"hostCftMode", &ncclConfig_t::hostCftMode, 1, 3},
    {"nvlsHostMode", &ncclConfig_t::nvlsHostMode, 0, INT_MAX},
};

// Members that the program did not set pass the check.
Status CheckRanges(const ncclConfig_t& config) {
  for (const Range& range : kRanges) {
    const int value = config.*range.member;
    if (value == NCCL_CONFIG_UNDEF_INT || (value >= range.least && value <= range.most)) continue;
    return MakeError(ErrorKind::kInvalidArgument, "ncclConfig_t: {} {} is not in {} to {}", range.name, value,
                     range.least, range.most);
  }
  if (config.maxCTAs != NCCL_CONFIG_UNDEF_INT && config.minCTAs > config.maxCTAs) {
    return MakeError(ErrorKind::kInvalidArgument, "ncclConfig_t: minCTAs {} is more than maxCTAs {}",
                     config.minCTAs, config.maxCTAs);
  }
  return {};
}

}  // namespace

Result<ncclConfig_t> ReadConfig(const ncclConfig_t* config, const ncclConfig_t& inherited) {
  if (config == nullptr) return inherited;
  if (config->magic != NCCL_API_MAGIC || config->size < offsetof(ncclConfig_t, blocking)) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "ncclConfig_t was not initialised with NCCL_CONFIG_INITIALIZER");
  }
  ncclConfig_t result = DYNAMICCL_NCCL_CONFIG_INITIALIZER;
  std::memcpy(&result, config, std::min(config->size, sizeof(result)));
  DYNAMICCL_CHECK_OK(CheckRanges(result));
  // The strings belong to the program and may go away, so the copy does not keep them. hostccl does not use
  // them.
  result.netName = nullptr;
  result.commName = nullptr;
  return result;
}

}  // namespace dynamiccl::hostccl
