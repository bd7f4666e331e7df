# SPDX-License-Identifier: Apache-2.0
# Installs what a user runs. The installed tree has the build tree's shape (bin/, lib/, lib/hostccl/), so programs find
# their objects the same way in both. hostccl's libnccl.so.2 has a folder of its own: it must never shadow the real one.
# A build without LibTorch, or without a part, installs the rest.
foreach(program dynamiccl dynamiccl-agents dynamiccl-zero)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()
if(TARGET dynamiccl_preload)
  set(DYNAMICCL_PORTABLE_OBJECTS "" CACHE PATH
      "Folder of libdynamiccl.so and libdynamiccl-audit.so to install in place of this build's (tools/setup/build_portable.sh).")
  if(DYNAMICCL_PORTABLE_OBJECTS)
    install(PROGRAMS ${DYNAMICCL_PORTABLE_OBJECTS}/libdynamiccl.so ${DYNAMICCL_PORTABLE_OBJECTS}/libdynamiccl-audit.so
            DESTINATION ${CMAKE_INSTALL_LIBDIR})
  else()
    install(TARGETS dynamiccl_preload dynamiccl_audit LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
  foreach(kind tuner profiler)
    install(CODE "file(CREATE_LINK libdynamiccl.so
      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libnccl-${kind}-dynamiccl.so\" SYMBOLIC)")
  endforeach()
endif()
if(TARGET hostccl_nccl)
  install(TARGETS hostccl_nccl LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hostccl)
endif()
if(TARGET dynamiccl_torch)
  install(TARGETS dynamiccl_torch LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/python/dynamiccl_torch)
  install(DIRECTORY ${DYNAMICCL_PYTHON_DIR}/ DESTINATION ${CMAKE_INSTALL_LIBDIR}/python
          PATTERN "*.so" EXCLUDE PATTERN __pycache__ EXCLUDE PATTERN dynamiccl_startup EXCLUDE)
endif()
# What releases of NCCL choose by themselves, for `dynamiccl doctor --compare-nccl`.
install(FILES traces/nccl_choices/releases.nccl-choices
        DESTINATION ${CMAKE_INSTALL_DATADIR}/dynamiccl/traces/nccl_choices)
# For pickled dumps of PyTorch's Flight Recorder, which `dynamiccl hang` and `dynamiccl why` read as JSON.
install(PROGRAMS traces/import/flight_recorder_to_json.py DESTINATION ${CMAKE_INSTALL_DATADIR}/dynamiccl/traces/import)
install(FILES tools/canary/known_issues.json DESTINATION ${CMAKE_INSTALL_DATADIR}/dynamiccl/tools/canary)
install(PROGRAMS tools/setup/fetch_nccl.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/dynamiccl/tools/setup)
install(PROGRAMS tools/canary/collect_machine.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/dynamiccl/tools/canary)
# The policy that DYNAMICCL_POLICY=starter names; docs/starter_policy.md has the command that made it.
configure_file(policies/starter.dcpolicy ${PROJECT_BINARY_DIR}/share/dynamiccl/starter.dcpolicy COPYONLY)
install(FILES policies/starter.dcpolicy DESTINATION ${CMAKE_INSTALL_DATADIR}/dynamiccl)
install(FILES src/annotate/agreed_value.h src/annotate/phase_marker.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dynamiccl)
# hostccl's headers, which include each other from the top of the tree there and from their own folder here.
foreach(header nccl_api.h nccl_function_list.h host_stream.h)
  file(READ src/nccl_abi/${header} text)
  string(REPLACE "#include \"src/nccl_abi/" "#include \"" text "${text}")
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/installed_headers/${header} CONTENT "${text}" @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/installed_headers/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dynamiccl/hostccl)
endforeach()
# For find_package and pkg-config; none holds a path of this machine.
include(CMakePackageConfigHelpers)
configure_package_config_file(packaging/dynamiccl-config.cmake.in ${PROJECT_BINARY_DIR}/dynamiccl-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dynamiccl PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dynamiccl-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dynamiccl-config.cmake ${PROJECT_BINARY_DIR}/dynamiccl-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/dynamiccl)
foreach(module dynamiccl dynamiccl-hostccl)
  configure_file(packaging/${module}.pc.in ${PROJECT_BINARY_DIR}/${module}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${module}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
