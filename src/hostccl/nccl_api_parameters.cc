// SPDX-License-Identifier: Apache-2.0
// NCCL's C functions that show parameters (2.30.4 and later). See parameters.h.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "src/hostccl/api_call.h"
#include "src/hostccl/debug_log.h"
#include "src/hostccl/nccl_export.h"
#include "src/hostccl/parameters.h"

using namespace dynamiccl;
using namespace dynamiccl::hostccl;

HOSTCCL_WEAK(ParamBind)
HOSTCCL_WEAK(ParamGetI8)
HOSTCCL_WEAK(ParamGetI16)
HOSTCCL_WEAK(ParamGetI32)
HOSTCCL_WEAK(ParamGetI64)
HOSTCCL_WEAK(ParamGetU8)
HOSTCCL_WEAK(ParamGetU16)
HOSTCCL_WEAK(ParamGetU32)
HOSTCCL_WEAK(ParamGetU64)
HOSTCCL_WEAK(ParamGetStr)
HOSTCCL_WEAK(ParamGet)
HOSTCCL_WEAK(ParamGetParameter)
HOSTCCL_WEAK(ParamGetAllParameterKeys)
HOSTCCL_WEAK(ParamDumpAll)

namespace {

ncclResult_t RefuseParameter(const char* problem) {
  return Refuse(Error{ErrorKind::kInvalidArgument, fmt::format("ncclParam: {}", problem), {}});
}

// Returns the parameter's value as a number of this type. Returns an error if the value does not fit.
template <typename Number>
ncclResult_t GetNumber(ncclParamHandle_t handle, Number* out) {
  if (!IsParameter(handle) || out == nullptr) return RefuseParameter("no such handle, or a null place");
  const auto number = NumberOf(*handle);
  if (!number || !std::in_range<Number>(*number)) {
    return RefuseParameter("the value is no whole number of this type");
  }
  *out = static_cast<Number>(*number);
  return ncclSuccess;
}

// Returns the parameter's text. The reference is valid until the same thread calls this again.
const std::string& KeptText(const ncclParamHandle& parameter) {
  static thread_local std::string text;
  text = TextOf(parameter);
  return text;
}

}  // namespace

// The handle points into a table that exists until the process ends.
ncclResult_t pncclParamBind(ncclParamHandle_t* out, const char* key) {
  const ncclParamHandle* const found = FindParameter(key);
  if (out == nullptr || found == nullptr) return RefuseParameter("no such key, or a null place");
  *out = const_cast<ncclParamHandle_t>(found);
  return ncclSuccess;
}

ncclResult_t pncclParamGetI8(ncclParamHandle_t h, int8_t* out) {
  return GetNumber(h, out);
}
ncclResult_t pncclParamGetI16(ncclParamHandle_t h, int16_t* out) {
  return GetNumber(h, out);
}
ncclResult_t pncclParamGetI32(ncclParamHandle_t h, int32_t* out) {
  return GetNumber(h, out);
}
ncclResult_t pncclParamGetI64(ncclParamHandle_t h, int64_t* out) {
  return GetNumber(h, out);
}
ncclResult_t pncclParamGetU8(ncclParamHandle_t h, uint8_t* out) {
  return GetNumber(h, out);
}
ncclResult_t pncclParamGetU16(ncclParamHandle_t h, uint16_t* out) {
  return GetNumber(h, out);
}
ncclResult_t pncclParamGetU32(ncclParamHandle_t h, uint32_t* out) {
  return GetNumber(h, out);
}
ncclResult_t pncclParamGetU64(ncclParamHandle_t h, uint64_t* out) {
  return GetNumber(h, out);
}

ncclResult_t pncclParamGetStr(ncclParamHandle_t h, const char** out) {
  if (!IsParameter(h) || out == nullptr) return RefuseParameter("no such handle, or a null place");
  *out = KeptText(*h).c_str();
  return ncclSuccess;
}

// Copies the bytes of the parameter's text without a terminating zero.
ncclResult_t pncclParamGet(ncclParamHandle_t h, void* out, int maxLen, int* len) {
  if (!IsParameter(h) || out == nullptr || len == nullptr) {
    return RefuseParameter("no such handle, or a null place");
  }
  const std::string text = TextOf(*h);
  if (maxLen < 0 || text.size() > static_cast<size_t>(maxLen))
    return RefuseParameter("the buffer is too small");
  std::memcpy(out, text.data(), text.size());
  *len = static_cast<int>(text.size());
  return ncclSuccess;
}

// The text is valid until the same thread calls this again.
ncclResult_t pncclParamGetParameter(const char* key, const char** value, int* valueLen) {
  const ncclParamHandle* const found = FindParameter(key);
  if (found == nullptr || value == nullptr) return RefuseParameter("no such key, or a null place");
  const std::string& text = KeptText(*found);
  *value = text.c_str();
  if (valueLen != nullptr) *valueLen = static_cast<int>(text.size());
  return ncclSuccess;
}

// The table is valid until the same thread calls this again.
ncclResult_t pncclParamGetAllParameterKeys(const char*** table, int* tableLen) {
  if (table == nullptr || tableLen == nullptr) return RefuseParameter("a null place");
  static thread_local std::vector<const char*> keys;
  keys.clear();
  for (const ncclParamHandle& parameter : AllParameters()) keys.push_back(parameter.name);
  *table = keys.data();
  *tableLen = static_cast<int>(keys.size());
  return ncclSuccess;
}

// Writes all parameters and their values to the log, under the subsystem ENV.
void pncclParamDumpAll() {
  for (const ncclParamHandle& parameter : AllParameters()) {
    Info(NCCL_SUBSYS_ENV, "{} = {}", parameter.name, TextOf(parameter));
  }
}
