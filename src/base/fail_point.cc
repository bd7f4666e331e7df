// SPDX-License-Identifier: Apache-2.0
// Parses HOSTCCL_FAILPOINT once and carries out its action. See fail_point.h.
#include "src/base/fail_point.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "src/base/settings.h"

namespace dynamiccl {
namespace {

constexpr const char* kNames[] = {
#define DYNAMICCL_FAIL_POINT_NAME(id, name) name,
    DYNAMICCL_FAIL_POINTS(DYNAMICCL_FAIL_POINT_NAME)
#undef DYNAMICCL_FAIL_POINT_NAME
};
constexpr const char* kActions[] = {"kill", "stop", "exit", "delay"};
// Milliseconds of a delay: long enough that every peer of a test visibly waits, and far below
// HOSTCCL_TIMEOUT_MS (30 s).
constexpr auto kDelay = std::chrono::milliseconds(500);

// The parsed setting. `point` is -1 while no step is armed; `passes` counts from 1.
struct Armed {
  int point = -1;
  std::string action;
  int passes = 1;
};

bool IsOne(std::span<const char* const> names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<Armed> Parse(const std::string& text) {
  Armed armed;
  if (text.empty()) return armed;
  const size_t colon = text.find(':');
  const size_t second = colon == std::string::npos ? colon : text.find(':', colon + 1);
  const std::string name = text.substr(0, colon);
  if (colon != std::string::npos) armed.action = text.substr(colon + 1, second - colon - 1);
  bool good = IsOne(kNames, name) && IsOne(kActions, armed.action);
  if (second != std::string::npos) {
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + second + 1, end, armed.passes);
    good = good && parsed.ec == std::errc() && parsed.ptr == end && armed.passes > 0;
  }
  if (!good) {
    std::string names;
    for (const char* known : kNames) names += std::string(names.empty() ? "" : ", ") + known;
    return WithHint(MakeError(ErrorKind::kInvalidArgument,
                              "HOSTCCL_FAILPOINT='{}' is not name:kill|stop|exit|delay[:n]", text),
                    "names: " + names);
  }
  armed.point = static_cast<int>(std::find(std::begin(kNames), std::end(kNames), name) - std::begin(kNames));
  return armed;
}

// A value that does not parse arms nothing here; CheckFailPointSetting reports it.
const Armed& Setup() {
  static const Armed armed = Parse(TextSetting(Setting::kHostcclFailpoint)).value_or(Armed{});
  return armed;
}

}  // namespace

std::span<const char* const> FailPointNames() {
  return kNames;
}

Status CheckFailPointSetting() {
  DYNAMICCL_TRY([[maybe_unused]] const Armed armed, Parse(TextSetting(Setting::kHostcclFailpoint)));
  return {};
}

void PassFailPoint(FailPoint point) {
  const Armed& armed = Setup();
  if (armed.point != static_cast<int>(point)) return;
  static std::atomic<int> passed{0};
  if (++passed != armed.passes) return;
  if (armed.action == "kill") ::raise(SIGKILL);
  if (armed.action == "stop") ::raise(SIGSTOP);
  if (armed.action == "exit") ::_exit(0);
  if (armed.action == "delay") std::this_thread::sleep_for(kDelay);
}

}  // namespace dynamiccl
