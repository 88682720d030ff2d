# Writes build_info.h if what it would say has changed.

# An unpacked archive has no commit, even if it lies inside somebody's repository.
get_filename_component(parent ${SOURCE_DIR} DIRECTORY)
set(ENV{GIT_CEILING_DIRECTORIES} ${parent})

execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit unknown)
else()
  execute_process(COMMAND git --no-optional-locks -C ${SOURCE_DIR} status --porcelain -- src include CMakeLists.txt cmake
    OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    string(APPEND commit -dirty)
  endif()
endif()
set(text "#define HAK_VERSION_STRING \"${VERSION}\"
#define HAK_BUILD_COMMIT \"${commit}\"
#define HAK_BUILD_COMPILER \"${COMPILER}\"
#define HAK_BUILD_FLAGS \"${FLAGS}\"
#define HAK_BUILD_TYPE \"${TYPE}\"
")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT "${old}" STREQUAL "${text}")
  file(WRITE ${OUTPUT} "${text}")
endif()
