"""Prints the progress of the suite and the remaining time on standard error."""

import sys
import time


def show_seconds(seconds):
    seconds = int(seconds + 0.5)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"


class Progress:
    """`total` is the estimated work in seconds; the work done so far corrects it."""

    def __init__(self, total, stream=sys.stderr, clock=time.monotonic):
        self.total = max(total, 0.001)
        self.done = 0.0
        self.stream = stream
        self.clock = clock
        self.began = clock()
        self.terminal = stream.isatty()
        self.last = ""

    def left(self):
        if self.done <= 0:
            return self.total
        return (self.total - self.done) * (self.clock() - self.began) / self.done

    def step(self, estimate, what):
        """Records the end of a run that was estimated to take `estimate` seconds."""
        self.done = min(self.done + estimate, self.total)
        text = f"[{100 * self.done / self.total:3.0f} %, {show_seconds(self.left())} left] {what}"
        if self.terminal:
            self.stream.write(f"\r{text[:100]:<100}")
        elif what != self.last:
            self.stream.write(text + "\n")
        self.last = what
        self.stream.flush()

    def drop(self, estimate):
        """Removes that much work from the rest."""
        self.total = max(self.total - estimate, self.done, 0.001)

    def clear(self):
        if self.terminal:
            self.stream.write("\r" + " " * 100 + "\r")
            self.stream.flush()
