# The examples with TLS, against peers over OpenSSL, GnuTLS and Go.

find_program(SIMPLENET_GO go DOC "go(1), whose crypto/tls is a peer of the tests")
mark_as_advanced(SIMPLENET_GO)
set(go_peer ${PROJECT_BINARY_DIR}/tests/tls/tls_peer)
if(SIMPLENET_GO)
  # Here and not in the build: whoever has Go does not always have what it needs to compile.
  add_test(NAME examples.tls_peer COMMAND ${CMAKE_COMMAND} -E env
    GO111MODULE=off GOTOOLCHAIN=local GOFLAGS=
    ${SIMPLENET_GO} build -o ${go_peer} ${CMAKE_CURRENT_SOURCE_DIR}/tls_peer.go)
  set_tests_properties(examples.tls_peer PROPERTIES TIMEOUT 300 FIXTURES_SETUP tls_peer)
endif()

function(simplenet_add_tls_example_test example)
  simplenet_add_example_test(${example} epoll io_uring)
  foreach(backend IN ITEMS epoll io_uring)
    set_property(TEST examples.${example}.${backend} APPEND PROPERTY FIXTURES_REQUIRED tls_peer)
  endforeach()
endfunction()

foreach(example IN ITEMS https_get mtls tls_client tls_echo_server tls_terminator)
  simplenet_add_tls_example_test(${example})
endforeach()
