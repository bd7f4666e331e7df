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
  install(TARGETS dynamiccl_preload dynamiccl_audit LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
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
          PATTERN "*.so" EXCLUDE PATTERN __pycache__ EXCLUDE)
endif()
# What releases of NCCL choose by themselves, for `dynamiccl doctor --compare-nccl`.
install(FILES traces/nccl_choices/releases.nccl-choices
        DESTINATION ${CMAKE_INSTALL_DATADIR}/dynamiccl/traces/nccl_choices)
install(FILES src/annotate/phase_marker.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dynamiccl)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
