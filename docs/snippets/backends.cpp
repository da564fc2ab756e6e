// The code of docs/usage/backend-selection.md.

#include <simplenet/simplenet.hpp>

#include <iostream>

using namespace simplenet;

task<> program();

void choose() {
    //! [run]
    run(program(), {.backend = backend::epoll});
    //! [run]
}

//! [probe]
void explain() {
    if (const auto offered = probe_backend(backend::io_uring); !offered) {
        std::cerr << "no io_uring here: " << offered.error().message() << '\n';
    }
}
//! [probe]

//! [selected]
task<> say_backend() {
    std::cout << "running on " << to_string(event_loop::current()->selected_backend()) << '\n';
    co_return;
}
//! [selected]

void run_small() {
    //! [small]
    const loop_options small{
        .queue_depth = 32,           // submission entries of io_uring
        .read_ahead = 16 * 1024,     // bytes that one stream may receive ahead
        .receive_pool = 1024 * 1024, // bytes of receive buffers, for all streams of the loop
    };
    //! [small]
    run(program(), small);
}
