# SPDX-License-Identifier: Apache-2.0
# DEB and TGZ by CPack, of a build with DYNAMICCL_SELF_CONTAINED (tools/setup/build_packages.sh makes one). With what is
# linked in go its licences and a bill of materials.
if(NOT DYNAMICCL_SELF_CONTAINED)
  return()
endif()
find_package(Python3 COMPONENTS Interpreter REQUIRED)
set(DYNAMICCL_ZIGLANG "" CACHE PATH "Python package ziglang that built DYNAMICCL_PORTABLE_OBJECTS.")
set(bill ${PROJECT_BINARY_DIR}/bill_of_materials)
set(objects_by g++)
if(DYNAMICCL_PORTABLE_OBJECTS)
  set(objects_by zig --ziglang ${DYNAMICCL_ZIGLANG})
endif()
string(REGEX MATCH "^[0-9]+" compiler ${CMAKE_CXX_COMPILER_VERSION})
execute_process(COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/packaging/bill_of_materials.py --version ${PROJECT_VERSION}
                        --objects-by ${objects_by} --compiler ${compiler} --out ${bill}
                COMMAND_ERROR_IS_FATAL ANY)
install(DIRECTORY ${bill}/licences DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${bill}/dynamiccl.spdx.json DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME dynamiccl)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGE_DESCRIPTION
"Sits at the NCCL boundary of an unmodified training job, recognises from its collectives what it does, and chooses
algorithm, protocol and channels of each, identically on every rank, from one file that was learned offline.
 Without such a file it changes nothing. No GPU is needed to try it.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGE_CONTACT "The DynamICCL authors <dynamiccl@localhost>")
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                                                WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The driver of `dynamiccl canary` is linked with a stub of NCCL. It runs with the releases that a user judges, so no
# package of NCCL is a dependency.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/tests/real_nccl/link_stub)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS python3)
string(TOLOWER ${CMAKE_SYSTEM_NAME} system)
set(CPACK_PACKAGE_FILE_NAME dynamiccl-${PROJECT_VERSION}-${system}-${CMAKE_SYSTEM_PROCESSOR}) # of the archive
include(CPack)
