"""backend_switch, and the reaction of other examples to a missing backend."""

import errno
import os

import support
from support import Server, refuse_io_uring

PLAIN = {"SIMPLENET_BACKEND": ""}


class backend_switch_test(support.TestCase):
    def switch(self, setup=None, environment=PLAIN):
        return support.run(["backend_switch"], setup=setup, environment=environment)

    def test_every_backend_works_or_reports_why_not(self):
        ended = self.switch()

        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertRegex(ended.stdout,
                         r"^automatic: works: hello over (epoll|io_uring)\n"
                         r"epoll: works: hello over epoll\n"
                         r"io_uring: (works: hello over io_uring|unavailable: .+)\n$")

    def test_the_environment_decides_what_automatic_means(self):
        ended = self.switch(environment={"SIMPLENET_BACKEND": "epoll"})

        self.assertIn("automatic: works: hello over epoll\n", ended.stdout)

    def test_a_wrong_environment_is_an_error(self):
        ended = self.switch(environment={"SIMPLENET_BACKEND": "kqueue"})

        self.assertEqual(ended.returncode, 1)
        self.assertIn("automatic: does not work: SIMPLENET_BACKEND names no backend: ",
                      ended.stdout)

    def test_a_kernel_that_refuses_io_uring_is_named_and_epoll_used(self):
        for reason in (errno.EPERM, errno.ENOSYS, errno.ENOMEM):
            with self.subTest(errno.errorcode[reason]):
                ended = self.switch(setup=refuse_io_uring(reason))

                self.assertEqual(ended.returncode, 0, ended.stderr)
                self.assertIn("automatic: works: hello over epoll\n", ended.stdout)
                self.assertRegex(
                    ended.stdout,
                    f"io_uring: unavailable: ({os.strerror(reason)}|backend unavailable)\n")

    def test_the_server_falls_back_to_epoll_if_io_uring_is_refused(self):
        with Server("echo_server", setup=refuse_io_uring(errno.EPERM), environment=PLAIN) as server:
            self.assertEqual(server.backend, "epoll")

    def test_an_unavailable_explicit_choice_is_reported_with_the_reason(self):
        reason = "(Operation not permitted|the library was built without it)"
        for command in (["echo_server", "--port", "0"], ["chat_server", "--port", "0"],
                        ["echo_client", "127.0.0.1", "1"],
                        ["connect_with_timeout", "127.0.0.1", "1"],
                        ["descriptor_passing", "fetch", "socket", "name"]):
            for by_option, environment in ((["--backend", "io_uring"], PLAIN),
                                           ([], {"SIMPLENET_BACKEND": "io_uring"})):
                with self.subTest(command[0], environment=environment):
                    ended = support.run(command + by_option, environment=environment,
                                        setup=refuse_io_uring(errno.EPERM))

                    self.assert_fails(ended, "cannot make an event loop: "
                                      "io_uring is unavailable: " + reason)

    def test_a_wrong_environment_is_reported_if_there_is_no_option(self):
        for command in (["producer_consumer"], ["watch_files", os.curdir]):
            with self.subTest(command[0]):
                ended = support.run(command, environment={"SIMPLENET_BACKEND": "kqueue"})

                self.assertEqual(ended.returncode, 1)
                self.assertRegex(ended.stderr, r"\Acannot .*: SIMPLENET_BACKEND names no backend: .*\n\Z")


if __name__ == "__main__":
    support.main()
