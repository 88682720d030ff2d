# Plugins and the program that opens them, in all their combinations. glibc's: musl has no RTLD_DEEPBIND, and no room
# for the thread-local words of libraries that come late.
foreach(kind IN ITEMS plain shared copy)
  add_library(guest_${kind} MODULE guest.c)
  target_compile_definitions(guest_${kind} PRIVATE _GNU_SOURCE)
endforeach()
target_link_libraries(guest_shared PRIVATE hakmem)
target_link_options(guest_shared PRIVATE -Wl,--no-as-needed)
target_link_libraries(guest_copy PRIVATE hakmem_static)

add_executable(host host_test.c)
target_link_libraries(host PRIVATE test_support)

# plugins.HOST_GUEST: `libc` or `preload`, and the plugin's kind; see host_test.c.
function(add_host_test name kind mode host guest relation)
  hak_add_test(plugins.${name} host ARGS $<TARGET_FILE:guest_${kind}> ${mode} ${host} ${guest} ${relation} ${ARGN})
endfunction()

add_host_test(libc_shared         shared local 104 104 same)
add_host_test(libc_shared_deep    shared deep  104 112 apart)
add_host_test(libc_copy           copy   local 104 104 same)
add_host_test(libc_copy_deep      copy   deep  104 112 apart)
add_host_test(preload_plain       plain  local 112 112 same PRELOAD)
add_host_test(preload_plain_deep  plain  deep  112 104 apart PRELOAD)
add_host_test(preload_shared      shared local 112 112 same PRELOAD)
add_host_test(preload_shared_deep shared deep  112 112 same PRELOAD)
add_host_test(preload_copy        copy   local 112 112 same PRELOAD)
add_host_test(preload_copy_deep   copy   deep  112 112 apart PRELOAD)

# A program that wraps glibc's second names.
add_executable(wrapped_malloc wrapped_malloc_test.c)
target_link_libraries(wrapped_malloc PRIVATE test_support)
target_compile_options(wrapped_malloc PRIVATE -fno-builtin)
hak_add_test(wrapped_malloc.preload wrapped_malloc PRELOAD)

add_executable(dlopen_library dlopen_test.c)
target_compile_definitions(dlopen_library PRIVATE LIBRARY="$<TARGET_FILE:hakmem>")
target_link_libraries(dlopen_library PRIVATE test_support)
add_dependencies(dlopen_library hakmem)
hak_add_test(dlopen.library dlopen_library)

# unload.HOW: whatever takes the stacks. Under the emulator the second module does not come to lie where the first one was.
if(NOT HAK_TEST_EMULATOR)
  foreach(bytes IN ITEMS 100072 360)
    add_library(module_${bytes} MODULE module.c)
    target_compile_definitions(module_${bytes} PRIVATE FRAME_BYTES=${bytes})
  endforeach()
  add_executable(unload unload_test.c)
  target_link_libraries(unload PRIVATE test_support)
  set_target_properties(unload PROPERTIES ENABLE_EXPORTS ON)
  function(add_unload_test how setting)
    hak_add_test(unload.${how} unload ARGS $<TARGET_FILE:module_100072> $<TARGET_FILE:module_360> ${ARGN} PRELOAD)
    set_property(TEST unload.${how} APPEND PROPERTY ENVIRONMENT ${setting})
    set_tests_properties(unload.${how} PROPERTIES SKIP_RETURN_CODE 77)
  endfunction()
  add_unload_test(guard HAKMEM_GUARD=1:1024 report)
  add_unload_test(check HAKMEM_CHECK=free,stacks report)
  add_unload_test(profile HAKMEM_PROFILE=1)
endif()
