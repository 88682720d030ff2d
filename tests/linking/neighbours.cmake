# Other allocators in the same process. The numbers are what each gives for 100000 bytes.
find_library(JEMALLOC_LIBRARY NAMES libjemalloc.so.2 REQUIRED)
find_library(TCMALLOC_LIBRARY NAMES libtcmalloc_minimal.so.4 REQUIRED)
set(ours 102400)
set(jemalloc 114688)
set(tcmalloc 106496)

add_executable(every_name every_name_test.cpp)
target_link_libraries(every_name PRIVATE test_options)
# As programs are that are linked with another allocator.
foreach(other IN ITEMS jemalloc tcmalloc)
  string(TOUPPER ${other}_LIBRARY library)
  add_executable(every_name_${other} every_name_test.cpp)
  target_link_libraries(every_name_${other} PRIVATE test_options -Wl,--no-as-needed ${${library}})
endforeach()

# add_neighbour_test(NAME PROGRAM USABLE [PRELOADED...])
function(add_neighbour_test name program usable)
  hak_add_test(neighbours.${name} ${program} ARGS ${usable})
  string(JOIN ":" preload ${ARGN})
  set_tests_properties(neighbours.${name} PROPERTIES ENVIRONMENT "LD_PRELOAD=${preload}")
endfunction()

set(library $<TARGET_FILE:hakmem>)
set(second ${CMAKE_CURRENT_BINARY_DIR}/second/libhakmem.so.1)
add_custom_command(OUTPUT ${second} DEPENDS hakmem
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/second
  COMMAND ${CMAKE_COMMAND} -E copy ${library} ${second} VERBATIM)
add_custom_target(second_library ALL DEPENDS ${second})

add_neighbour_test(alone every_name ${ours} ${library})
add_neighbour_test(twice every_name ${ours} ${library} ${second})
add_neighbour_test(before_jemalloc every_name ${ours} ${library} ${JEMALLOC_LIBRARY})
add_neighbour_test(after_jemalloc every_name ${jemalloc} ${JEMALLOC_LIBRARY} ${library})
add_neighbour_test(before_tcmalloc every_name ${ours} ${library} ${TCMALLOC_LIBRARY})
add_neighbour_test(after_tcmalloc every_name ${tcmalloc} ${TCMALLOC_LIBRARY} ${library})
add_neighbour_test(program_with_jemalloc every_name_jemalloc ${ours} ${library})
add_neighbour_test(program_with_tcmalloc every_name_tcmalloc ${ours} ${library})

# All symbols bound at the start: nothing may be missing.
add_neighbour_test(bind_now every_name ${ours} ${library})
set_property(TEST neighbours.bind_now APPEND PROPERTY ENVIRONMENT LD_BIND_NOW=1)
