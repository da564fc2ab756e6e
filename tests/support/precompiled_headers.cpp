// Carries the headers that the tests have in common and that are compiled once:
// tests/CMakeLists.txt.
int main() {}
