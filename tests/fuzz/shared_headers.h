// SPDX-License-Identifier: Apache-2.0
// Includes the headers that most fuzz entries need. A build of fuzzers compiles them once
// (cmake/dynamiccl_targets.cmake).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "src/base/byte_codec.h"
#include "src/base/status.h"
