# SPDX-License-Identifier: Apache-2.0
# Finds LibTorch: CMAKE_PREFIX_PATH first, then the project's .venv, then the python3 on PATH.
if(NOT Torch_DIR)
  foreach(python ${PROJECT_SOURCE_DIR}/.venv/bin/python3 python3)
    execute_process(COMMAND ${python} -c "import torch; print(torch.utils.cmake_prefix_path)"
                    OUTPUT_VARIABLE torch_prefix OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE result)
    if(result EQUAL 0)
      list(APPEND CMAKE_PREFIX_PATH ${torch_prefix})
      break()
    endif()
  endforeach()
endif()
find_package(Torch QUIET)
if(NOT Torch_FOUND)
  message(FATAL_ERROR "LibTorch was not found.\n"
    "  hint: run tools/setup/install.sh (pip installs torch==2.13.0 into .venv), or\n"
    "        pass -DCMAKE_PREFIX_PATH=/path/to/libtorch, or\n"
    "        build without the trainer and the agents: -DDYNAMICCL_BUILD_TORCH=OFF")
endif()
# Its folder of headers has an fmt of its own, which stands before the system's and whose code it does not export. Of
# another release than the file was written for, fmt is used header-only, which is the same and slower to compile.
set(fmt_version "")
foreach(directory ${TORCH_INCLUDE_DIRS})
  if(EXISTS ${directory}/fmt/base.h)
    file(STRINGS ${directory}/fmt/base.h fmt_version REGEX "define FMT_VERSION 12[0-9]+")
    set(fmt_directory ${directory})
    break()
  endif()
endforeach()
if(fmt_version)
  add_library(dynamiccl_fmt_of_libtorch STATIC ${PROJECT_SOURCE_DIR}/cmake/fmt_of_libtorch.cc)
  target_include_directories(dynamiccl_fmt_of_libtorch SYSTEM PRIVATE ${fmt_directory})
  set_target_properties(dynamiccl_fmt_of_libtorch PROPERTIES POSITION_INDEPENDENT_CODE ON)
  list(APPEND TORCH_LIBRARIES dynamiccl_fmt_of_libtorch)
else()
  set_property(TARGET torch APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)
endif()
