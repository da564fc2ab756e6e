# SIMPLENET_SANITIZE=address,undefined | thread: instruments everything built in this tree,
# including a fetched GoogleTest, because partly instrumented programs give false reports.

if(SIMPLENET_SANITIZE)
  if(NOT SIMPLENET_SANITIZE MATCHES "^(address|undefined|thread|leak)(,(address|undefined|leak))*$")
    message(FATAL_ERROR
      "SIMPLENET_SANITIZE=${SIMPLENET_SANITIZE}: expected address,undefined or thread")
  endif()
  # Errors end the program: nobody would read the report of a test that passes.
  add_compile_options(-fsanitize=${SIMPLENET_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SIMPLENET_SANITIZE})
  if(SIMPLENET_SANITIZE MATCHES "undefined")
    # The vptr check opens a pipe to find out whether memory is readable. If a test has filled the
    # descriptor table, that fails, and the check calls every object invalid.
    add_compile_options(-fno-sanitize=vptr)
  endif()
  if(SIMPLENET_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC warns that TSan does not model atomic_thread_fence; the code here does not rely on it.
    add_compile_options(-Wno-tsan)
  endif()
endif()
