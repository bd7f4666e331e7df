// SPDX-License-Identifier: Apache-2.0
// The parts of spdlog's code that the programs use, for packages: what Debian has as a shared object. As
// spdlog's own src/spdlog.cpp and src/color_sinks.cpp (1.9 to 1.12).
#include <spdlog/common-inl.h>
#include <spdlog/details/backtracer-inl.h>
#include <spdlog/details/log_msg-inl.h>
#include <spdlog/details/log_msg_buffer-inl.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/details/os-inl.h>
#include <spdlog/details/periodic_worker-inl.h>
#include <spdlog/details/registry-inl.h>
#include <spdlog/logger-inl.h>
#include <spdlog/pattern_formatter-inl.h>
#include <spdlog/sinks/ansicolor_sink-inl.h>
#include <spdlog/sinks/base_sink-inl.h>
#include <spdlog/sinks/sink-inl.h>
#include <spdlog/spdlog-inl.h>

#include <mutex>

using spdlog::details::console_mutex;
using spdlog::details::console_nullmutex;

template class spdlog::sinks::base_sink<std::mutex>;
template class spdlog::sinks::base_sink<spdlog::details::null_mutex>;
template class spdlog::sinks::ansicolor_sink<console_mutex>;
template class spdlog::sinks::ansicolor_sink<console_nullmutex>;
template class spdlog::sinks::ansicolor_stdout_sink<console_mutex>;
template class spdlog::sinks::ansicolor_stdout_sink<console_nullmutex>;
template class spdlog::sinks::ansicolor_stderr_sink<console_mutex>;
template class spdlog::sinks::ansicolor_stderr_sink<console_nullmutex>;
