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

# Packages must not ask a user for the libraries of the machine that built them: archives instead of shared objects, and
# spdlog's code compiled in. Sources are compiled as for a build with shared ones.
add_library(dynamiccl_zlib INTERFACE)
add_library(dynamiccl_zstd INTERFACE)
if(DYNAMICCL_SELF_CONTAINED)
  add_library(dynamiccl_spdlog STATIC cmake/spdlog_compiled_once.cc)
  foreach(library spdlog::spdlog fmt::fmt)
    get_target_property(definitions ${library} INTERFACE_COMPILE_DEFINITIONS)
    get_target_property(headers ${library} INTERFACE_INCLUDE_DIRECTORIES)
    target_compile_definitions(dynamiccl_spdlog PUBLIC ${definitions})
    target_include_directories(dynamiccl_spdlog SYSTEM PUBLIC ${headers})
  endforeach()
  target_link_libraries(dynamiccl_spdlog PUBLIC dynamiccl_fmt Threads::Threads)
  foreach(library zlib zstd)
    string(REGEX REPLACE "^zlib$" "z" name ${library})
    find_library(DYNAMICCL_ARCHIVE_OF_${library} lib${name}.a REQUIRED)
    target_link_libraries(dynamiccl_${library} INTERFACE ${DYNAMICCL_ARCHIVE_OF_${library}})
    target_include_directories(dynamiccl_${library} SYSTEM INTERFACE ${${library}_INCLUDE_DIRS})
  endforeach()
  add_link_options(-static-libstdc++ -static-libgcc)
else()
  add_library(dynamiccl_spdlog INTERFACE)
  target_link_libraries(dynamiccl_spdlog INTERFACE spdlog::spdlog)
  target_link_libraries(dynamiccl_zlib INTERFACE PkgConfig::zlib)
  target_link_libraries(dynamiccl_zstd INTERFACE PkgConfig::zstd)
endif()

if(DYNAMICCL_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
if(DYNAMICCL_BUILD_TORCH)
  include(find_libtorch)
endif()
