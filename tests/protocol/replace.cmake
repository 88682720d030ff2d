# OUTPUT is INPUT with OLD, which must be there exactly once, replaced by NEW.
file(READ ${INPUT} text)
string(FIND "${text}" "${OLD}" first)
string(FIND "${text}" "${OLD}" last REVERSE)
if(first EQUAL -1 OR NOT first EQUAL last)
  message(FATAL_ERROR "${INPUT}: what is to be replaced is not there, or more than once: ${OLD}")
endif()
string(REPLACE "${OLD}" "${NEW}" text "${text}")
file(WRITE ${OUTPUT} "${text}")
