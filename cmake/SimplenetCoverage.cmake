# SIMPLENET_ENABLE_COVERAGE: instruments the tree for gcov and adds the target `coverage`, which
# reports what the tests have run since the counters were deleted: <build>/coverage/index.html, and a
# table by layer. It fails below these minima for src/. `scripts/check coverage` does all of it.

if(SIMPLENET_ENABLE_COVERAGE)
  set(SIMPLENET_COVERAGE_LINES 95 CACHE STRING "Per cent of lines required by `coverage`")
  set(SIMPLENET_COVERAGE_BRANCHES 85 CACHE STRING "Per cent of branches required by `coverage`")

  # Atomic counters: several threads run the same lines, and lost updates would look like untested
  # code.
  add_compile_options(--coverage -fprofile-update=atomic)
  add_compile_definitions(SIMPLENET_COVERAGE) # tests may take longer
  add_link_options(--coverage)

  find_program(SIMPLENET_GCOVR gcovr)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    string(REGEX MATCH "^[0-9]+" clang_major ${CMAKE_CXX_COMPILER_VERSION})
    find_program(SIMPLENET_LLVM_COV NAMES llvm-cov-${clang_major} llvm-cov)
    set(gcov_command "${SIMPLENET_LLVM_COV} gcov")
  else()
    # The gcov of the compiler that wrote the notes, because its format differs between versions.
    string(REGEX MATCH "^[0-9]+" gcc_major ${CMAKE_CXX_COMPILER_VERSION})
    find_program(SIMPLENET_GCOV NAMES gcov-${gcc_major} gcov)
    set(gcov_command "${SIMPLENET_GCOV}")
  endif()

  if(SIMPLENET_GCOVR)
    add_custom_target(coverage
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/coverage
      COMMAND ${SIMPLENET_GCOVR}
        --root ${PROJECT_SOURCE_DIR} --object-directory ${CMAKE_BINARY_DIR}
        --filter ${PROJECT_SOURCE_DIR}/src/ --filter ${PROJECT_SOURCE_DIR}/include/
        --gcov-executable ${gcov_command}
        --exclude-throw-branches --exclude-unreachable-branches
        --json ${CMAKE_BINARY_DIR}/coverage/counts.json
        ${CMAKE_BINARY_DIR}
      COMMAND ${SIMPLENET_GCOVR}
        --root ${PROJECT_SOURCE_DIR} --add-tracefile ${CMAKE_BINARY_DIR}/coverage/counts.json
        --html-details ${CMAKE_BINARY_DIR}/coverage/index.html
        --json-summary ${CMAKE_BINARY_DIR}/coverage/summary.json
      COMMAND ${PROJECT_SOURCE_DIR}/scripts/coverage_by_layer.py
        ${CMAKE_BINARY_DIR}/coverage/summary.json
      COMMAND ${SIMPLENET_GCOVR}
        --root ${PROJECT_SOURCE_DIR} --add-tracefile ${CMAKE_BINARY_DIR}/coverage/counts.json
        --filter ${PROJECT_SOURCE_DIR}/src/
        --txt ${CMAKE_BINARY_DIR}/coverage/summary.txt
        --print-summary --fail-under-line ${SIMPLENET_COVERAGE_LINES}
        --fail-under-branch ${SIMPLENET_COVERAGE_BRANCHES}
      WORKING_DIRECTORY ${CMAKE_BINARY_DIR}
      COMMENT "Coverage of src/ and include/: coverage/index.html"
      USES_TERMINAL VERBATIM)
  else()
    add_custom_target(coverage
      COMMAND ${CMAKE_COMMAND} -E echo "gcovr is missing: apt install gcovr"
      COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
  endif()
endif()
