# SPDX-License-Identifier: Apache-2.0
# Third-party libraries, each with what it is for. scripts in tools/setup install them on Debian 12.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)            # messages (compiled by src/base)
find_package(nlohmann_json REQUIRED)  # JSON lines, reports, traces of other tools
find_package(spdlog REQUIRED)         # log of the command-line programs
find_package(CLI11 REQUIRED)          # command lines
find_package(PkgConfig REQUIRED)
pkg_check_modules(zlib REQUIRED IMPORTED_TARGET zlib)    # gzipped traces
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd) # archives of traces; never in what is loaded into jobs
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)          # checksums of every file we write
find_path(TL_EXPECTED_INCLUDE_DIR tl/expected.hpp REQUIRED)  # Result<T>
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)   # topology files
if(DYNAMICCL_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
if(DYNAMICCL_BUILD_TORCH)
  include(find_libtorch)
endif()
