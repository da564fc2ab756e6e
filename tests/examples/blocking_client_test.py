"""blocking_client, against servers that do not use the library."""

import support
from support import PythonServer, receive_all, refused_port, reset


class blocking_client_test(support.TestCase):
    def test_it_prints_the_reply_to_its_line(self):
        asked = []

        def answer(stream):
            asked.append(receive_all(stream))  # ends because the client half-closes
            stream.sendall(b"fine, ")
            stream.sendall(b"thank you\n")

        with PythonServer(answer) as server:
            ended = support.run(["blocking_client", "127.0.0.1", server.port, "how are you?"])

        self.assertEqual((ended.returncode, ended.stdout, ended.stderr),
                         (0, "fine, thank you\n", ""))
        self.assertEqual(asked, [b"how are you?\n"])

    def test_it_prints_a_mebibyte(self):
        def answer(stream):
            receive_all(stream)  # closing with unread input would be a reset
            stream.sendall(b"0123456789abcde\n" * 65536)

        with PythonServer(answer) as server:
            ended = support.run(["blocking_client", "127.0.0.1", server.port])

        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertTrue(ended.stdout == "0123456789abcde\n" * 65536, "other bytes came")

    def test_it_prints_nothing_for_an_empty_reply(self):
        with PythonServer(receive_all) as server:
            ended = support.run(["blocking_client", "127.0.0.1", server.port])

        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "", ""))

    def test_a_full_disk_is_a_failure(self):
        for answer in (b"short\n", b"0123456789abcde\n" * 65536):
            def serve(stream, answer=answer):
                receive_all(stream)
                stream.sendall(answer)

            with PythonServer(serve) as server:
                ended = support.run_on_a_full_disk(["blocking_client", "127.0.0.1", server.port])

            self.assertEqual((ended.returncode, ended.stderr),
                             (1, "cannot write the output: No space left on device\n"))

    def test_it_reports_a_reset(self):
        def abort(stream):
            receive_all(stream)
            reset(stream)

        with PythonServer(abort) as server:
            ended = support.run(["blocking_client", "127.0.0.1", server.port])

        self.assert_fails(ended, "Connection reset by peer")

    def test_it_reports_refusal(self):
        holder, port = refused_port()
        with holder:
            ended = support.run(["blocking_client", "127.0.0.1", port])

        self.assert_fails(ended, f"cannot ask 127.0.0.1:{port}: Connection refused")


if __name__ == "__main__":
    support.main()
