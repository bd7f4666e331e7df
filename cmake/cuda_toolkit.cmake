# SPDX-License-Identifier: Apache-2.0
# The CUDA Toolkit's part: kernels, and a compilation of the trainer's device file. Sets DYNAMICCL_WITH_CUDA, at each
# configure anew: whether there is an nvcc that compiles the kernels, unless DYNAMICCL_BUILD_CUDA says ON or OFF.
# nvcc: DYNAMICCL_NVCC, or the first of 12.8 or later in CUDA_HOME, on PATH, or that tools/setup/fetch_nvcc.sh fetched.
set(cache_folder $ENV{XDG_CACHE_HOME})
if(NOT cache_folder)
  set(cache_folder $ENV{HOME}/.cache)
endif()
set(DYNAMICCL_BUILD_CUDA AUTO CACHE STRING "Build the kernels and what needs CUDA's headers: AUTO (with a fit nvcc), ON, OFF.")
set_property(CACHE DYNAMICCL_BUILD_CUDA PROPERTY STRINGS AUTO ON OFF)
# Ampere, Hopper, Blackwell of data centres and of desktops; others translate the oldest's portable code.
set(DYNAMICCL_CUDA_ARCHITECTURES 80 90 100 120 CACHE STRING "Architectures that the kernels are built for, oldest first.")

function(dynamiccl_nvcc_release nvcc result)
  execute_process(COMMAND ${nvcc} --version OUTPUT_VARIABLE says ERROR_QUIET RESULT_VARIABLE code)
  string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" ignored "${says}")
  set(${result} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

# The first release that builds for every architecture above.
function(dynamiccl_fit_nvcc result nvcc)
  dynamiccl_nvcc_release(${nvcc} release)
  if(NOT release OR release VERSION_LESS 12.8)
    message(STATUS "CUDA: ${nvcc} is passed over: release ${release}, older than 12.8")
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

# Architectures asked for that this nvcc knows, and the others.
function(dynamiccl_known_architectures known unknown)
  execute_process(COMMAND ${DYNAMICCL_NVCC} --list-gpu-code OUTPUT_VARIABLE says ERROR_QUIET)
  string(REGEX MATCHALL "[0-9]+" says "${says}")
  set(kept ${DYNAMICCL_CUDA_ARCHITECTURES})
  set(left ${DYNAMICCL_CUDA_ARCHITECTURES})
  foreach(architecture IN LISTS DYNAMICCL_CUDA_ARCHITECTURES)
    string(REGEX REPLACE "[a-z]+$" "" listed ${architecture})  # 90a is listed as 90
    if(listed IN_LIST says)
      list(REMOVE_ITEM left ${architecture})
    else()
      list(REMOVE_ITEM kept ${architecture})
    endif()
  endforeach()
  set(${known} ${kept} PARENT_SCOPE)
  set(${unknown} ${left} PARENT_SCOPE)
endfunction()

# Compiles the kernels for the oldest architecture: empty, or what nvcc and the host compiler say against it. Asked again
# only when the compilers change; what fails is tried at each configure.
function(dynamiccl_try_kernels why)
  list(GET DYNAMICCL_KERNEL_ARCHITECTURES 0 oldest)
  set(flags ${DYNAMICCL_NVCC_FLAGS} -gencode arch=compute_${oldest},code=sm_${oldest})
  set(asked "${DYNAMICCL_NVCC} ${nvcc_release} ${CMAKE_CXX_COMPILER_VERSION} ${flags}")
  set(${why} "" PARENT_SCOPE)
  if("${asked}" STREQUAL "${DYNAMICCL_KERNELS_COMPILED_WITH}")
    return()
  endif()
  execute_process(COMMAND ${DYNAMICCL_NVCC} ${flags} -fatbin -o ${CMAKE_BINARY_DIR}/CMakeFiles/kernels_tried.fatbin
                          ${DYNAMICCL_KERNEL_SOURCE}
                  OUTPUT_VARIABLE says ERROR_VARIABLE says RESULT_VARIABLE code)
  if(code EQUAL 0)
    set(DYNAMICCL_KERNELS_COMPILED_WITH "${asked}" CACHE INTERNAL "Compilers and flags that compiled the kernels.")
    return()
  endif()
  file(WRITE ${CMAKE_BINARY_DIR}/CMakeFiles/kernels_tried.log "${says}")
  string(REGEX MATCH "[^\n]*error[^\n]*" first "${says}")
  string(CONCAT reason "${DYNAMICCL_NVCC} with ${CMAKE_CXX_COMPILER} does not compile the kernels: ${first} "
                       "(all of it: ${CMAKE_BINARY_DIR}/CMakeFiles/kernels_tried.log)")
  set(${why} "${reason}" PARENT_SCOPE)
endfunction()

# Sets the architectures and flags, and why_not when nvcc is of no use.
macro(dynamiccl_examine_nvcc)
  dynamiccl_nvcc_release(${DYNAMICCL_NVCC} nvcc_release)
  dynamiccl_known_architectures(DYNAMICCL_KERNEL_ARCHITECTURES unknown)
  set(DYNAMICCL_KERNEL_SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/tools/bench/cuda/device_kernels.cu)
  set(DYNAMICCL_NVCC_FLAGS -std=c++20 -O3 --expt-relaxed-constexpr -fmad=false
                           -ccbin ${CMAKE_CXX_COMPILER} -I${CMAKE_CURRENT_SOURCE_DIR})
  # The release that fetch_nvcc.sh fetches has nothing to warn of; another's new warning is no reason to fail.
  if(nvcc_release VERSION_EQUAL 13.0)
    list(APPEND DYNAMICCL_NVCC_FLAGS -Werror all-warnings)
  endif()
  if(NOT DYNAMICCL_KERNEL_ARCHITECTURES)
    set(why_not "${DYNAMICCL_NVCC} (release ${nvcc_release}) builds for none of ${DYNAMICCL_CUDA_ARCHITECTURES}")
  else()
    dynamiccl_try_kernels(why_not)
  endif()
endmacro()

set(DYNAMICCL_WITH_CUDA OFF)
set(DYNAMICCL_CUDA_INCLUDE_DIR)
if(DYNAMICCL_BUILD_CUDA STREQUAL "AUTO" OR DYNAMICCL_BUILD_CUDA)
  set(why_not)
  find_program(DYNAMICCL_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin
               PATHS /usr/local/cuda/bin ${cache_folder}/dynamiccl/cuda-13.0/bin VALIDATOR dynamiccl_fit_nvcc)
  if(DYNAMICCL_NVCC)
    dynamiccl_examine_nvcc()
  else()
    set(why_not "there is no nvcc of 12.8 or later")
  endif()
  if(NOT why_not)
    set(DYNAMICCL_WITH_CUDA ON)
    # nvcc may be a script or a link: it says itself where its toolkit is.
    execute_process(COMMAND ${DYNAMICCL_NVCC} --dryrun -x cu -c /dev/null -o /dev/null
                    ERROR_VARIABLE nvcc_says OUTPUT_QUIET)
    string(REGEX MATCH "TOP=([^\n]+)" ignored "${nvcc_says}")
    set(DYNAMICCL_CUDA_INCLUDE_DIR ${CMAKE_MATCH_1}/include)
    message(STATUS "CUDA: ${DYNAMICCL_NVCC}, kernels for ${DYNAMICCL_KERNEL_ARCHITECTURES}")
    if(unknown)
      message(STATUS "CUDA: none for ${unknown}, which release ${nvcc_release} does not know")
    endif()
  elseif(DYNAMICCL_BUILD_CUDA STREQUAL "AUTO")
    message(STATUS "CUDA: left out, ${why_not} (tools/setup/fetch_nvcc.sh fetches one that fits g++ 12)")
  else()
    message(FATAL_ERROR "DYNAMICCL_BUILD_CUDA is ON, but ${why_not}.\n"
      "  hint: run tools/setup/fetch_nvcc.sh (100 MB into ~/.cache/dynamiccl), or\n"
      "        put a CUDA Toolkit of 12.8 or later on PATH, or give -DDYNAMICCL_NVCC=/path/to/nvcc")
  endif()
else()
  message(STATUS "CUDA: left out, DYNAMICCL_BUILD_CUDA is ${DYNAMICCL_BUILD_CUDA}")
endif()
