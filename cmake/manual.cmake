# SPDX-License-Identifier: Apache-2.0
# Manual pages and completions, as the programs tell them of themselves. `dynamiccl` asks those beside it for the
# options that they take in its name, so they are built before.
if(NOT CMAKE_CROSSCOMPILING)
  set(share ${PROJECT_BINARY_DIR}/share)
  set(siblings)
  foreach(program dynamiccl-agents dynamiccl-zero)
    if(TARGET ${program})
      list(APPEND siblings ${program})
    endif()
  endforeach()
  set(folders ${share}/bash-completion/completions ${share}/zsh/site-functions ${share}/fish/vendor_completions.d)
  add_custom_command(OUTPUT ${share}/man/man1/dynamiccl.1
    COMMAND dynamiccl man -o ${share}/man/man1
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folders}
    COMMAND dynamiccl completion bash > ${share}/bash-completion/completions/dynamiccl
    COMMAND dynamiccl completion zsh > ${share}/zsh/site-functions/_dynamiccl
    COMMAND dynamiccl completion fish > ${share}/fish/vendor_completions.d/dynamiccl.fish
    DEPENDS dynamiccl ${siblings} COMMENT "Writing manual pages and completions")
  add_custom_target(dynamiccl_manual ALL DEPENDS ${share}/man/man1/dynamiccl.1)
  install(DIRECTORY ${share}/ DESTINATION ${CMAKE_INSTALL_DATADIR})
endif()
