// simplenet-httpd: a web server. See docs/usage/httpd-reference.md.

int main() {
    return 0;
}
