"""producer_consumer, compared with Python's arithmetic."""

import signal
import subprocess

import support


def primes(limit):
    return [n for n in range(2, limit + 1) if all(n % f for f in range(2, int(n ** 0.5) + 1))]


class producer_consumer_test(support.TestCase):
    def test_finds_each_prime_once(self):
        for limit in (1, 2, 1000, 20_000):
            ended = subprocess.run([support.program("producer_consumer"), str(limit)],
                                   stdout=subprocess.PIPE, timeout=support.LIMIT,
                                   universal_newlines=True)
            expected = primes(limit)
            self.assertEqual(ended.stdout,
                             f"{len(expected)} primes, their sum is {sum(expected)}\n")
            self.assertEqual(ended.returncode, 0)

    def test_prints_its_usage(self):
        for arguments in (["0"], ["1", "2"], ["many"], ["10x"], ["-5"], ["2147483648"]):
            ended = support.run(["producer_consumer", *arguments])
            self.assertEqual((ended.returncode, ended.stdout), (2, ""))
            self.assertRegex(ended.stderr, r"\A.+\nUsage: producer_consumer \[LIMIT\]\n\Z")

    def test_a_stop_is_a_failure(self):
        process = subprocess.Popen([support.program("producer_consumer"), "1000000000"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   universal_newlines=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)  # first, so that no process stays behind
        with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
            # run() catches SIGINT; earlier, it would kill the process.
            caught = 0
            while not caught & 1 << (signal.SIGINT - 1):
                status.seek(0)
                line = next(line for line in status if line.startswith("SigCgt:"))
                caught = int(line.split()[1], 16)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=support.LIMIT)
        self.assertEqual((process.returncode, said), (1, "stopped early: Operation canceled\n"))

    def test_a_full_disk_is_a_failure(self):
        ended = support.run_on_a_full_disk(["producer_consumer"])
        self.assertEqual((ended.returncode, ended.stderr),
                         (1, "cannot write the output: No space left on device\n"))


if __name__ == "__main__":
    support.main()
