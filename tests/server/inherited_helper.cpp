// The program that inherited_listeners_test has activated: tells the first client of its last
// listener what it has inherited.

#include <simplenet/simplenet.hpp>

#include <string>

using namespace simplenet;

int main() {
    auto inherited = or_throw(inherited_listeners());
    std::string text;
    for (const inherited_listener& each : inherited) {
        if (!text.empty()) text += ' ';
        text += each.name + '=' + std::to_string(each.socket.get());
    }
    text += '\n';
    auto listener = or_throw(blocking::local_listener::adopt(std::move(inherited.back().socket)));
    auto client = or_throw(listener.accept());
    or_throw(client.write_all(text));
    return 0;
}
