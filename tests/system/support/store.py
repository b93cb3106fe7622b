"""The consumer's store, seen and disturbed from outside."""
import os
import sqlite3
import subprocess


def processed(store):
    """The ids in the store, as the sqlite3 shell sees them."""
    done = subprocess.run(["sqlite3", "-readonly", store, "SELECT message_id FROM processed ORDER BY message_id"],
                          capture_output=True, text=True, timeout=30)
    return done.stdout.split() if done.returncode == 0 else []


def everything_in(store):
    """Every value of every table, as bytes."""
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
        connection.text_factory = bytes
        tables = [name.decode() for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {value for table in tables for row in connection.execute(f'SELECT * FROM "{table}"') for value in row}


class locked:
    """Hold the store's write lock."""

    def __init__(self, store):
        self._connection = sqlite3.connect(store, isolation_level=None, timeout=30)

    def __enter__(self):
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, *_):
        self._connection.execute("ROLLBACK")
        self._connection.close()


class small_disk:
    """A file system of its own for the store, of 1 MB unless options say otherwise. Needs root."""

    def __init__(self, path, options="size=1m"):
        self.path, self._options = path, options

    def __enter__(self):
        os.makedirs(self.path, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", self._options, "claimq-test", self.path], check=True)
        return self

    def fill(self):
        with open(os.path.join(self.path, "filler"), "ab", buffering=0) as file:
            for size in (65536, 4096, 512, 1):
                try:
                    while file.write(b"x" * size) == size:
                        pass
                except OSError:
                    pass

    def empty(self):
        os.remove(os.path.join(self.path, "filler"))

    def read_only(self):
        subprocess.run(["mount", "-o", "remount,ro", self.path], check=True)

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.path], check=True)
