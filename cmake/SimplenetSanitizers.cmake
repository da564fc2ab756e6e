# SIMPLENET_SANITIZE=address,undefined | thread: instruments everything built in this tree, a
# fetched GoogleTest included, because half-instrumented programs give false reports.

if(SIMPLENET_SANITIZE)
  if(NOT SIMPLENET_SANITIZE MATCHES "^(address|undefined|thread|leak)(,(address|undefined|leak))*$")
    message(FATAL_ERROR
      "SIMPLENET_SANITIZE=${SIMPLENET_SANITIZE}: expected address,undefined or thread")
  endif()
  # Errors end the program: a test that prints a report and passes is a test nobody reads.
  add_compile_options(-fsanitize=${SIMPLENET_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SIMPLENET_SANITIZE})
  if(SIMPLENET_SANITIZE MATCHES "undefined")
    # The check of vptrs opens a pipe to see whether memory can be read. Where a test has filled the
    # descriptor table it cannot, and calls every object invalid.
    add_compile_options(-fno-sanitize=vptr)
  endif()
  if(SIMPLENET_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC warns that TSan does not model atomic_thread_fence; the code here does not rely on it.
    add_compile_options(-Wno-tsan)
  endif()
endif()
