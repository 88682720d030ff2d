# musl, with Debian's musl-tools: a wrapper of gcc. There is no libstdc++ for musl; C++ is for the operators only, which
# do not need it: its headers, which ask for glibc's version, are enough.
set(CMAKE_C_COMPILER musl-gcc)
set(CMAKE_CXX_COMPILER g++)
set(specs /usr/lib/x86_64-linux-musl/musl-gcc.specs)
execute_process(COMMAND g++ -dumpversion OUTPUT_VARIABLE gcc_version OUTPUT_STRIP_TRAILING_WHITESPACE)
string(JOIN " " CMAKE_CXX_FLAGS_INIT
  -specs=${specs} "'-D__GLIBC_PREREQ(major,minor)=0'"
  -isystem /usr/include/c++/${gcc_version} -isystem /usr/include/x86_64-linux-gnu/c++/${gcc_version})
set(CMAKE_CXX_COMPILER_WORKS ON) # it cannot link
# What the tests need besides the C library; `./hakmem test` puts it there.
set(CMAKE_FIND_ROOT_PATH ${CMAKE_CURRENT_LIST_DIR}/../build/musl-root)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(HAK_TEST_CXX OFF)      # no programs in C++
set(HAK_TEST_LESS ON)      # as much as in the debug build
set(HAK_TEST_PROGRAMS OFF) # the system's programs are not for this library
