# FSDP_TEST_PYTHON: a Python with matplotlib and jsonschema, which only the tests and plots/ need.
# The distribution's Python comes first, because that is where its packages are.
if(NOT FSDP_TEST_PYTHON)
  foreach(candidate /usr/bin/python3 python3 /usr/local/bin/python3)
    execute_process(COMMAND ${candidate} -c "import jsonschema, matplotlib"
      RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
    if(missing EQUAL 0)
      set(FSDP_TEST_PYTHON ${candidate} CACHE STRING "Python with matplotlib and jsonschema")
      break()
    endif()
  endforeach()
endif()
if(NOT FSDP_TEST_PYTHON)
  message(STATUS "No Python with matplotlib and jsonschema (apt-get install python3-matplotlib "
    "python3-jsonschema): the tests of plots/ and of the record's schema are disabled")
endif()
