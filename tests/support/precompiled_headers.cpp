// Holds the headers that the tests share and that are compiled once: tests/CMakeLists.txt.
int main() {}
