# In C++, and in C with libstdc++ somewhere.

# Preloaded into a program that knows nothing of it.
add_executable(operators_plain operators_test.cpp)
target_link_libraries(operators_plain PRIVATE test_options)
hak_add_test(operators.preload operators_plain PRELOAD)
hak_add_test(operators.hardened operators_plain)
set_tests_properties(operators.hardened PROPERTIES ENVIRONMENT "LD_PRELOAD=$<TARGET_FILE:hakmem_hardened>")

add_executable(no_libstdcxx no_libstdcxx_test.c ../support/family_libc.c)
target_link_libraries(no_libstdcxx PRIVATE test_support)
hak_add_test(no_libstdcxx.preload no_libstdcxx PRELOAD)

# libstdc++ comes with a plugin, after us and private to it.
add_library(plugin MODULE plugin.cpp)
add_executable(plugin_host plugin_host.c)
target_compile_definitions(plugin_host PRIVATE PLUGIN="$<TARGET_FILE:plugin>")
target_link_libraries(plugin_host PRIVATE test_support)
add_dependencies(plugin_host plugin)
hak_add_test(plugin.preload plugin_host PRELOAD)

# Linked with the shared library. The program itself names none of its symbols, so keep it needed.
add_executable(operators_shared operators_test.cpp)
target_link_libraries(operators_shared PRIVATE test_options hakmem)
target_link_options(operators_shared PRIVATE -Wl,--no-as-needed)
hak_add_test(operators.shared operators_shared)

# Linked with the archive, the C library being shared.
add_executable(operators_static operators_test.cpp)
target_link_libraries(operators_static PRIVATE test_options hakmem_static)
hak_add_test(operators.static operators_static)

add_executable(static_cpp static_cpp_test.cpp)
target_link_libraries(static_cpp PRIVATE test_options hakmem_static)
hak_add_test(static_cpp.static static_cpp)

# A program with some operators of its own: the rest is made of them.
foreach(form IN ITEMS plain arrays)
  add_executable(own_operators_${form} own_operators_test.cpp)
  add_executable(own_operators_${form}_shared own_operators_test.cpp)
  add_executable(own_operators_${form}_static own_operators_test.cpp)
  foreach(program IN ITEMS own_operators_${form} own_operators_${form}_shared own_operators_${form}_static)
    target_link_libraries(${program} PRIVATE test_options)
    target_compile_options(${program} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-sized-deallocation>) # that is what it is about
    if(form STREQUAL "arrays")
      target_compile_definitions(${program} PRIVATE OWN_ARRAYS)
    endif()
  endforeach()
  target_link_libraries(own_operators_${form}_shared PRIVATE hakmem)
  target_link_options(own_operators_${form}_shared PRIVATE -Wl,--no-as-needed)
  target_link_libraries(own_operators_${form}_static PRIVATE hakmem_static)
  hak_add_test(own_operators.${form}.preload own_operators_${form} PRELOAD)
  hak_add_test(own_operators.${form}.shared own_operators_${form}_shared)
  hak_add_test(own_operators.${form}.static own_operators_${form}_static)
  hak_add_test(own_operators.${form}.check own_operators_${form} PRELOAD)
  set_property(TEST own_operators.${form}.check APPEND PROPERTY ENVIRONMENT "HAKMEM_CHECK=1")
  hak_add_test(own_operators.${form}.hardened own_operators_${form})
  set_tests_properties(own_operators.${form}.hardened PROPERTIES ENVIRONMENT "LD_PRELOAD=$<TARGET_FILE:hakmem_hardened>")
endforeach()

# A program with an allocator of its own.
add_executable(own_malloc own_malloc_test.cpp)
target_link_libraries(own_malloc PRIVATE test_options)
hak_add_test(own_malloc.preload own_malloc PRELOAD)

# A program that only counts.
add_executable(counted_malloc counted_malloc_test.cpp)
target_link_libraries(counted_malloc PRIVATE test_options)
target_compile_options(counted_malloc PRIVATE -fno-builtin)
hak_add_test(counted_malloc.preload counted_malloc PRELOAD)
hak_add_test(counted_malloc.check counted_malloc PRELOAD)
set_property(TEST counted_malloc.check APPEND PROPERTY ENVIRONMENT "HAKMEM_CHECK=1")
hak_add_test(counted_malloc.hardened counted_malloc)
set_tests_properties(counted_malloc.hardened PROPERTIES ENVIRONMENT "LD_PRELOAD=$<TARGET_FILE:hakmem_hardened>")
