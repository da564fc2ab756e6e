"""producer_consumer, against arithmetic that is not ours."""

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

    def test_says_how_it_is_used(self):
        for arguments in (["0"], ["1", "2"], ["many"]):
            ended = subprocess.run([support.program("producer_consumer"), *arguments],
                                   stderr=subprocess.PIPE, timeout=support.LIMIT,
                                   universal_newlines=True)
            self.assertEqual((ended.returncode, ended.stderr),
                             (2, "usage: producer_consumer [LIMIT]\n"))


if __name__ == "__main__":
    support.main()
