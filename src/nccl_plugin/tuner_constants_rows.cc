// SPDX-License-Identifier: Apache-2.0
#include "src/nccl_plugin/tuner_constants_rows.h"

#include <algorithm>
#include <cstring>

namespace dynamiccl {
namespace {

// Copies the bytes of as many rows as both tables have.
template <typename To, typename From>
void CopyRows(const From& from, To& to) {
  std::memcpy(&to, &from, std::min(sizeof(to), sizeof(from)));
}

template <typename From, typename To>
void CopyAll(const From& from, To& to) {
  CopyRows(from.baseLatencies, to.baseLatencies);
  CopyRows(from.hwLatencies, to.hwLatencies);
  CopyRows(from.llMaxBws, to.llMaxBws);
  CopyRows(from.perChMaxRingLL128Bws, to.perChMaxRingLL128Bws);
  CopyRows(from.perChMaxTreeLL128Bws, to.perChMaxTreeLL128Bws);
  CopyRows(from.perChMaxTreeBws, to.perChMaxTreeBws);
  CopyRows(from.perChMaxNVLSTreeBws, to.perChMaxNVLSTreeBws);
}

}  // namespace

ncclTunerConstants_v7_t WithRubinRow(const ncclTunerConstants_v5_t& constants) {
  constexpr int kBlackwell = 3, kRubin = 4;
  ncclTunerConstants_v7_t all;
  CopyAll(constants, all);
  for (auto* table : {&all.llMaxBws, &all.perChMaxRingLL128Bws, &all.perChMaxTreeLL128Bws,
                      &all.perChMaxTreeBws, &all.perChMaxNVLSTreeBws})
    std::copy(std::begin((*table)[kBlackwell]), std::end((*table)[kBlackwell]), std::begin((*table)[kRubin]));
  return all;
}

ncclTunerConstants_v5_t WithoutRubinRow(const ncclTunerConstants_v7_t& constants) {
  ncclTunerConstants_v5_t older;
  CopyAll(constants, older);
  return older;
}

void KeepRubinRow(const ncclTunerConstants_v5_t& from, ncclTunerConstants_v7_t& to) {
  CopyAll(from, to);
}

}  // namespace dynamiccl
