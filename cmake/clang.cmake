# clang, whatever the system's compiler is. In a file of its own: a preset's cache variable would make each configuration
# begin anew.
set(CMAKE_C_COMPILER clang)
set(CMAKE_CXX_COMPILER clang++)
