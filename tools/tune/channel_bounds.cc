// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/channel_bounds.h"

namespace dynamiccl {
namespace {

// These texts are logged in plugin/runtime/agreed_ctas.cc.
constexpr std::string_view kBounded = "initialises a communicator with ";
constexpr std::string_view kUnbounded = "initialises a communicator as the program asks: ";

}  // namespace

std::string WhyBoundsStay(std::string_view output) {
  if (output.find(kBounded) != std::string_view::npos) return "";
  const size_t unbounded = output.find(kUnbounded);
  if (unbounded == std::string_view::npos)
    return "no line of the job's output says so; NCCL_MIN_CTAS or the like, or the program, sets its own, or "
           "the job writes its log elsewhere";
  const std::string_view why = output.substr(unbounded + kUnbounded.size());
  return std::string(why.substr(0, why.find('\n')));
}

}  // namespace dynamiccl
