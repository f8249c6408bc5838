"""What the front door says, and how it ends when it cannot go on."""

import argparse
import os
import subprocess
import sys


class Refusal(Exception):
    """Nothing can be done before the user does something. The text says what is wrong and what to do; exit status 2."""


class Parser(argparse.ArgumentParser):
    """Command-line options whose mistakes are refused in one line."""

    def error(self, message):
        raise Refusal(f"{message[0].upper()}{message[1:]}. `{self.prog.replace('ladder', './ladder', 1)} --help` lists the options.")


def say(text=""):
    print(text, flush=True)


def note(text):
    print(text, file=sys.stderr, flush=True)


def plural(count, thing):
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


class Progress:
    """One line that counts up, rewritten in place on a terminal; elsewhere a line now and then."""

    def __init__(self, total, what):
        self.total, self.what, self.done, self.last_percent = total, what, 0, -1
        self.terminal = sys.stderr.isatty()

    def step(self, text=""):
        self.done += 1
        if self.terminal:
            sys.stderr.write(f"\r\x1b[K[{self.done}/{self.total}] {self.what} {text}")
            sys.stderr.flush()
        elif 10 * self.done // self.total != self.last_percent:
            self.last_percent = 10 * self.done // self.total
            note(f"[{self.done}/{self.total}] {self.what} {text}")

    def end(self):
        if self.terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def output_of(command, **options):
    """Standard output of a command, or None when it cannot be run or fails."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                              text=True, **options)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def cores():
    return len(os.sched_getaffinity(0))
