# SPDX-License-Identifier: Apache-2.0
# Cross-compiles for Linux machines with an old glibc: what is built runs where that release or a later one is. Used by
# tools/setup/build_portable.sh, which makes the compilers and the folder of headers:
#   DYNAMICCL_PORTABLE_TOOLS    folder with zig-cc, zig-c++, zig-ar and zig-ranlib, which know the target
#   DYNAMICCL_PORTABLE_HEADERS  folder with the header-only libraries and nothing of this machine's libc
set(CMAKE_SYSTEM_NAME Linux)
if(NOT CMAKE_SYSTEM_PROCESSOR)
  set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_HOST_SYSTEM_PROCESSOR})
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CMAKE_SYSTEM_PROCESSOR DYNAMICCL_PORTABLE_TOOLS DYNAMICCL_PORTABLE_HEADERS)
set(CMAKE_C_COMPILER ${DYNAMICCL_PORTABLE_TOOLS}/zig-cc)
set(CMAKE_CXX_COMPILER ${DYNAMICCL_PORTABLE_TOOLS}/zig-c++)
set(CMAKE_AR ${DYNAMICCL_PORTABLE_TOOLS}/zig-ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${DYNAMICCL_PORTABLE_TOOLS}/zig-ranlib CACHE FILEPATH "")
# Never this machine's own headers: they declare what an older glibc does not have.
set(CMAKE_C_STANDARD_INCLUDE_DIRECTORIES ${DYNAMICCL_PORTABLE_HEADERS})
set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${DYNAMICCL_PORTABLE_HEADERS})
set(CMAKE_C_IMPLICIT_INCLUDE_DIRECTORIES /usr/include)
set(CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES /usr/include)
# Where Debian keeps the CMake files of the libraries whose headers are used, whatever machine is built for.
set(CMAKE_C_LIBRARY_ARCHITECTURE ${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu)
set(CMAKE_CXX_LIBRARY_ARCHITECTURE ${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE ${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu)
