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
