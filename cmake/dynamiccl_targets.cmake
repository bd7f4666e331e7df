# SPDX-License-Identifier: Apache-2.0
# For fuzzers, which are built to run for minutes: the headers that most files read, read once. Halves the time.
# dynamiccl_share_headers(<target>): where this is no build of fuzzers by clang it does nothing.
set(DYNAMICCL_SHARED_HEADERS OFF)
if(DYNAMICCL_FUZZ AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(DYNAMICCL_SHARED_HEADERS ON)
  add_library(dynamiccl_shared_headers OBJECT ${PROJECT_SOURCE_DIR}/tests/fuzz/shared_headers.cc)
  target_link_libraries(dynamiccl_shared_headers PRIVATE dynamiccl_options)
  target_include_directories(dynamiccl_shared_headers SYSTEM PRIVATE ${TL_EXPECTED_INCLUDE_DIR})
  target_precompile_headers(dynamiccl_shared_headers PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/shared_headers.h)
  # So that ccache finds what was compiled with them.
  target_compile_options(dynamiccl_options INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
endif()
function(dynamiccl_share_headers target)
  if(DYNAMICCL_SHARED_HEADERS)
    target_precompile_headers(${target} REUSE_FROM dynamiccl_shared_headers)
  endif()
endfunction()

# dynamiccl_compile_together(<target>): files of the target whose local names do not clash become one translation unit; see
# cmake/unity_groups.py. The groups are made when the whole tree has been read, by one call.
set_property(GLOBAL PROPERTY DYNAMICCL_TOGETHER)
function(dynamiccl_compile_together target)
  set_property(GLOBAL APPEND PROPERTY DYNAMICCL_TOGETHER ${target})
endfunction()

function(dynamiccl_group_sources)
  get_property(targets GLOBAL PROPERTY DYNAMICCL_TOGETHER)
  set(listing "")
  foreach(target IN LISTS targets)
    get_target_property(sources ${target} SOURCES)
    get_target_property(folder ${target} SOURCE_DIR)
    list(FILTER sources INCLUDE REGEX "\\.cc$")
    list(TRANSFORM sources PREPEND ${folder}/ REGEX "^[^/]")
    list(JOIN sources "\t" files)
    string(APPEND listing "${target}\t${files}\n")
  endforeach()
  file(WRITE ${PROJECT_BINARY_DIR}/CMakeFiles/together.txt "${listing}")
  execute_process(COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/cmake/unity_groups.py
                  INPUT_FILE ${PROJECT_BINARY_DIR}/CMakeFiles/together.txt OUTPUT_VARIABLE groups
                  COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" groups "${groups}")
  foreach(group IN LISTS groups)
    string(REPLACE "\t" ";" words "${group}")
    list(POP_FRONT words target number)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    set_source_files_properties(${words} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${number})
  endforeach()
endfunction()
if(DYNAMICCL_COMPILE_TOGETHER)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  cmake_language(DEFER DIRECTORY ${PROJECT_SOURCE_DIR} CALL dynamiccl_group_sources)
endif()

# dynamiccl_library(<name> SOURCES ... DEPS ...): one static library a folder, linking only the layers below it.
function(dynamiccl_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_link_libraries(${name} PUBLIC dynamiccl_options ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
    dynamiccl_share_headers(${name})
    dynamiccl_compile_together(${name})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE dynamiccl_options ${ARG_DEPS})
  endif()
endfunction()

# dynamiccl_test_programs(<label> <target> ...): the target tests_<label> builds them.
function(dynamiccl_test_programs label)
  if(NOT TARGET tests_${label})
    add_custom_target(tests_${label})
  endif()
  add_dependencies(tests_${label} ${ARGN})
endfunction()

# dynamiccl_time_out(<seconds> <test> ...): when ctest gives a test up. Sanitizers make programs 3 to 15 times as slow, and
# what they are to find is no matter of time.
function(dynamiccl_patience seconds result)
  set(factor 1)
  if(DYNAMICCL_SANITIZE)
    set(factor 5)
  endif()
  math(EXPR patience "${seconds} * ${factor}")
  set(${result} ${patience} PARENT_SCOPE)
endfunction()
function(dynamiccl_time_out seconds)
  dynamiccl_patience(${seconds} patience)
  set_tests_properties(${ARGN} PROPERTIES TIMEOUT ${patience})
endfunction()

# dynamiccl_cost(<labels> <result>): properties that tell ctest -j what to start first where it has not timed the tests yet.
# Tests of the real NCCL run one after the other: they begin at once, so that others fill the remaining cores all the time.
# Then comes what takes long, and the short ones fill the end.
function(dynamiccl_cost labels result)
  set(cost)
  if("real_nccl" IN_LIST labels)
    set(cost COST 1000)
  elseif("torch" IN_LIST labels)
    set(cost COST 100)
  elseif("integration" IN_LIST labels)
    set(cost COST 10)
  endif()
  set(${result} ${cost} PARENT_SCOPE)
endfunction()

# dynamiccl_test(<name> SOURCES ... DEPS ... LABELS ... [TIMEOUT s] [ENVIRONMENT NAME=value] [LIBRARIES folder] [ALONE] [SERIAL] [THREADS]):
# one gtest program; each case is a ctest test, or with LibTorch the program. Under ctest -j ALONE keeps its cases from running beside each other, SERIAL beside any test.
# LIBRARIES: where the loader looks first, before what the user's LD_LIBRARY_PATH names.
# Labels used: fast (default), integration, torch, real_nccl, cuda, slow; stressed: integration tests that AddressSanitizer is to
# see as well; and threads: what ThreadSanitizer has something to see in (THREADS). The target tests_LABEL builds the
# programs of a label.
function(dynamiccl_test name)
  cmake_parse_arguments(ARG "ALONE;SERIAL;THREADS" "TIMEOUT;ENVIRONMENT;LIBRARIES" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS fast)
  endif()
  if(ARG_THREADS)
    list(APPEND ARG_LABELS threads)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  dynamiccl_patience(${ARG_TIMEOUT} patience)
  add_executable(${name} ${ARG_SOURCES})
  dynamiccl_compile_together(${name})
  dynamiccl_compile_lightly(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE dynamiccl_options ${ARG_DEPS} dynamiccl_test_support GTest::gmock GTest::gtest_main)
  foreach(label IN LISTS ARG_LABELS)
    dynamiccl_test_programs(${label} ${name})
  endforeach()
  set(lock)
  if(ARG_ALONE)
    set(lock RESOURCE_LOCK ${name})
  endif()
  if(ARG_SERIAL)
    set(lock RUN_SERIAL TRUE)
  endif()
  if(ARG_ENVIRONMENT)
    list(APPEND lock ENVIRONMENT ${ARG_ENVIRONMENT})
  endif()
  if(ARG_LIBRARIES)
    list(APPEND lock ENVIRONMENT_MODIFICATION LD_LIBRARY_PATH=path_list_prepend:${ARG_LIBRARIES})
  endif()
  dynamiccl_cost("${ARG_LABELS}" cost)
  list(APPEND lock ${cost})
  # One word, as gtest_discover_tests takes no list; -L fast and -L threads both find fast_threads.
  string(REPLACE ";" "_" labels "${ARG_LABELS}")
  if("torch" IN_LIST ARG_LABELS)
    # LibTorch takes longer to load and unload than most cases take, so one process runs them all. The time-out is for a
    # hang. gtest lists what failed after what was skipped: where the output ends with a skipped case, none failed.
    dynamiccl_patience(1200 patience)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS ${labels} TIMEOUT ${patience} ${lock}
                         SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\] [^\n]*\n?$")
  else()
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES LABELS ${labels} TIMEOUT ${patience} ${lock})
  endif()
endfunction()

# dynamiccl_bats_test(<name> LABELS ... TIMEOUT s [ENVIRONMENT NAME=value ...] [LOCK name]): <name>.bats of this folder, told
# DYNAMICCL_BIN and DYNAMICCL_SOURCE. Without bats it is skipped, visibly.
function(dynamiccl_bats_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;LOCK" "LABELS;ENVIRONMENT" ${ARGN})
  find_program(BATS_PROGRAM bats)
  if(BATS_PROGRAM)
    add_test(NAME ${name} COMMAND ${BATS_PROGRAM} ${CMAKE_CURRENT_SOURCE_DIR}/${name}.bats)
  else()
    add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: there is no bats")
    set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "skipped: there is no bats")
  endif()
  string(REPLACE ";" "_" labels "${ARG_LABELS}")
  set_tests_properties(${name} PROPERTIES LABELS ${labels} ENVIRONMENT
    "DYNAMICCL_BIN=$<TARGET_FILE:dynamiccl>;DYNAMICCL_SOURCE=${PROJECT_SOURCE_DIR};${ARG_ENVIRONMENT}")
  dynamiccl_cost("${ARG_LABELS}" cost)
  if(ARG_LOCK)
    list(APPEND cost RESOURCE_LOCK ${ARG_LOCK})
  endif()
  if(cost)
    set_tests_properties(${name} PROPERTIES ${cost})
  endif()
  dynamiccl_time_out(${ARG_TIMEOUT} ${name})
endfunction()
