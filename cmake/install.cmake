# What `cmake --install` puts where: the two libraries, the header, and what pkg-config and find_package read. All of
# it finds the rest by its own place, so that an installed tree may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hakmem)
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set_target_properties(hakmem_static PROPERTIES EXPORT_NAME static)
set_target_properties(hakmem_hardened PROPERTIES EXPORT_NAME hardened)
install(TARGETS hakmem hakmem_hardened hakmem_static EXPORT hakmem
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${CMAKE_SOURCE_DIR}/include/hakmem.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# hakmem::hakmem, hakmem::static
install(EXPORT hakmem FILE hakmemTargets.cmake NAMESPACE hakmem:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/hakmemConfig.cmake.in ${generated}/hakmemConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${generated}/hakmemConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${generated}/hakmemConfig.cmake ${generated}/hakmemConfigVersion.cmake DESTINATION ${package_dir})

# The way from the .pc files to the prefix; directories that do not lie under it are named in full.
file(RELATIVE_PATH to_prefix /prefix/${pkgconfig_dir} /prefix)
string(REGEX REPLACE "/$" "" to_prefix "${to_prefix}")
foreach(kind IN ITEMS LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${kind}}")
    set(pc_${kind} "${CMAKE_INSTALL_${kind}}")
  else()
    set(pc_${kind} "\${prefix}/${CMAKE_INSTALL_${kind}}")
  endif()
endforeach()
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  set(pc_prefix "\${pcfiledir}/${to_prefix}")
endif()
foreach(name IN ITEMS hakmem hakmem-static)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/${name}.pc.in ${generated}/${name}.pc @ONLY)
  install(FILES ${generated}/${name}.pc DESTINATION ${pkgconfig_dir})
endforeach()
