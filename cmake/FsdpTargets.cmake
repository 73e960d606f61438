# One target a folder, one way to declare it.

# fsdp_library(NAME SOURCES a.cpp ... DEPENDS fsdp::x ...): target fsdp_NAME with alias fsdp::NAME.
# Headers are included from the repository root ("core/units/dtype.hpp").
function(fsdp_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE" ${ARGN})
  if(ARG_SOURCES)
    add_library(fsdp_${name} STATIC ${ARG_SOURCES})
    target_link_libraries(fsdp_${name} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE})
    target_include_directories(fsdp_${name} PUBLIC ${PROJECT_SOURCE_DIR})
    fsdp_warnings(fsdp_${name})
  else()
    add_library(fsdp_${name} INTERFACE)
    target_link_libraries(fsdp_${name} INTERFACE ${ARG_DEPENDS})
    target_include_directories(fsdp_${name} INTERFACE ${PROJECT_SOURCE_DIR})
  endif()
  add_library(fsdp::${name} ALIAS fsdp_${name})
endfunction()

# fsdp_executable(NAME SOURCES ... DEPENDS ...): a program of ours.
function(fsdp_executable name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  fsdp_warnings(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endfunction()

function(fsdp_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow)
  if(FSDP_TUNE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(FSDP_TUNE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${FSDP_TUNE_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${FSDP_TUNE_SANITIZE})
  endif()
endfunction()

# fsdp_add_test(NAME SOURCES ... DEPENDS ... LABELS ... TIMEOUT s): one GoogleTest program, one ctest entry.
function(fsdp_add_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPENDS;LABELS" ${ARGN})
  fsdp_executable(${name} SOURCES ${ARG_SOURCES} DEPENDS ${ARG_DEPENDS} GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE FSDP_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  fsdp_test_properties(${name} "${ARG_TIMEOUT}" "${ARG_LABELS}")
endfunction()

# fsdp_add_mpi_test(NAME RANKS 2 LAUNCH flags... COMMAND prog args... LABELS ... TIMEOUT s): under mpiexec with the
# flags of LAUNCH, always with a time-out of its own beside ctest's, so that a hung rank never outlives the test.
function(fsdp_add_mpi_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT;RANKS" "COMMAND;LABELS;LAUNCH" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_test(NAME ${name} COMMAND timeout -k 5 ${ARG_TIMEOUT} ${MPIEXEC_EXECUTABLE} ${ARG_LAUNCH} -n ${ARG_RANKS}
    ${ARG_COMMAND})
  math(EXPR outer "${ARG_TIMEOUT} + 20")
  fsdp_test_properties(${name} "${outer}" "${ARG_LABELS}")
  # Ranks share the machine's cores with each other: one MPI test at a time.
  set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
endfunction()

function(fsdp_test_properties name timeout labels)
  if(NOT timeout)
    set(timeout 120)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} LABELS "${labels}")
endfunction()

function(fsdp_print_summary)
  message(STATUS "fsdp-tune ${PROJECT_VERSION}: ${CMAKE_BUILD_TYPE}, warnings as errors ${FSDP_TUNE_WERROR}, "
    "sanitizers '${FSDP_TUNE_SANITIZE}'")
  message(STATUS "  backend sim: always")
  message(STATUS "  backend mpi: ${FSDP_HAVE_MPI} (FSDP_TUNE_MPI=${FSDP_TUNE_MPI})")
  message(STATUS "  CUDA, NCCL:  ${FSDP_CUDA_FOUND}; this release has no backend that uses them")
endfunction()
