# SPDX-License-Identifier: Apache-2.0
# dynamiccl_library(<name> SOURCES ... DEPS ...): one static library a folder, linking only the layers below it.
function(dynamiccl_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_link_libraries(${name} PUBLIC dynamiccl_options ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE dynamiccl_options ${ARG_DEPS})
  endif()
endfunction()

# dynamiccl_test(<name> SOURCES ... DEPS ... LABELS ... [TIMEOUT s] [ALONE]): one gtest program; each case is a ctest
# test. ALONE keeps its cases from running beside each other under ctest -j.
# Labels used: fast (default), integration, torch, real_nccl, slow.
function(dynamiccl_test name)
  cmake_parse_arguments(ARG "ALONE" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS fast)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE dynamiccl_options ${ARG_DEPS} dynamiccl_test_support GTest::gmock GTest::gtest_main)
  set(lock)
  if(ARG_ALONE)
    set(lock RESOURCE_LOCK ${name})
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT} ${lock})
endfunction()
