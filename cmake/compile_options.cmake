# SPDX-License-Identifier: Apache-2.0
# How every file of the project is compiled: language, warnings, visibility, sanitizers, ccache.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type." FORCE)
endif()

# Paths below the source folder count relative to it: another clone of the same sources finds what this one compiled.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(launcher env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

# For code that runs in every call of a job: g++ clears a struct of 100 bytes by "rep stos", which takes longer than
# all that is then done with it.
include(CheckCXXCompilerFlag)
set(DYNAMICCL_SMALL_CLEARS)
foreach(kind memset memcpy)
  set(flag "-m${kind}-strategy=vector_loop:512:noalign,libcall:-1:noalign")
  check_cxx_compiler_flag("${flag}" DYNAMICCL_HAS_${kind}_STRATEGY)
  if(DYNAMICCL_HAS_${kind}_STRATEGY)
    list(APPEND DYNAMICCL_SMALL_CLEARS "${flag}")
  endif()
endforeach()

option(DYNAMICCL_COMPILE_TOGETHER "Compile files of a folder together: headers are read once for all, but a changed file is compiled with its neighbours." ON)
set(DYNAMICCL_SHADOW_WARNING -Wshadow)
if(DYNAMICCL_COMPILE_TOGETHER)
  # Every name of one file is global for the next; preset dev compiles each file alone, with all warnings. clang has no
  # warning of local names alone.
  set(DYNAMICCL_SHADOW_WARNING $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local>)
endif()
add_library(dynamiccl_options INTERFACE)
target_include_directories(dynamiccl_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(dynamiccl_options INTERFACE -Wall -Wextra ${DYNAMICCL_SHADOW_WARNING}
                       -Wno-missing-field-initializers
                       # Decisions must be equal on every machine: no contraction of a*b+c, no reassociation.
                       -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 takes the sum of a literal and a std::string for an overlapping copy (GCC bug 105651, mended in 13).
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(dynamiccl_options INTERFACE -Wno-restrict)
  endif()
  # Files that are compiled together are included by another: every local type of a coroutine then counts as one of a
  # header.
  if(DYNAMICCL_COMPILE_TOGETHER)
    target_compile_options(dynamiccl_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
endif()
# What is loaded is resolved at once, unless its target has DYNAMICCL_LAZY, and read-only afterwards; no stack is code.
target_link_options(dynamiccl_options INTERFACE -Wl,-z,relro,-z,noexecstack
                    -Wl,-z,$<IF:$<BOOL:$<TARGET_PROPERTY:DYNAMICCL_LAZY>>,lazy,now>)
if(DYNAMICCL_HARDEN)
  # As distributions compile. The assertions of the standard library end the process: for programs and for tests,
  # and for a job's object where a wrong index is worse than the end of the job.
  target_compile_options(dynamiccl_options INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -D_GLIBCXX_ASSERTIONS
                         -fstack-protector-strong -fstack-clash-protection -fcf-protection)
endif()
# dynamiccl_compile_lightly(<target> ...): for code whose compiling takes longer than all its runs. With
# -Og g++ 12 takes a sixth less time for a test than with -O1.
function(dynamiccl_compile_lightly)
  if(NOT DYNAMICCL_SANITIZE)
    foreach(target IN LISTS ARGN)
      target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Og>)
      # As for sanitizers, below.
      target_compile_definitions(${target} PRIVATE $<$<CONFIG:Release>:XXH_NO_INLINE_HINTS=1>)
    endforeach()
  endif()
endfunction()

if(DYNAMICCL_SANITIZE)
  # Line tables and light optimisation: UBSan's checks at -O2 take g++ 12 four times as long, 37 s for one larger file.
  if(NOT DYNAMICCL_SANITIZE_LEVEL)
    set(DYNAMICCL_SANITIZE_LEVEL -Og)
    if(DYNAMICCL_SANITIZE STREQUAL "thread")
      set(DYNAMICCL_SANITIZE_LEVEL -O1)
    endif()
  endif()
  target_compile_options(dynamiccl_options INTERFACE -g1 ${DYNAMICCL_SANITIZE_LEVEL}
                         -fsanitize=${DYNAMICCL_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all
                         # Clang 14 cannot write coroutines with it (llvm-project issue 49689).
                         $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>)
  # xxhash's headers force inlining that -Og refuses.
  target_compile_definitions(dynamiccl_options INTERFACE XXH_NO_INLINE_HINTS=1)
  target_link_options(dynamiccl_options INTERFACE -fsanitize=${DYNAMICCL_SANITIZE})
endif()
