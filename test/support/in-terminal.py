"""Runs a program in a terminal of its own. Lines on stdin say what to do, as JSON; stdout has what the screen got.

    {"type": "text"}     types it
    {"columns": 40}      changes the width
    {"close": true}      closes the terminal and waits for the program; its exit status is the last line
"""
import fcntl
import json
import os
import pty
import select
import struct
import sys
import termios
import threading

pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])


closing = threading.Event()
ended = threading.Event()


def show():
    """The one that reads closes, too: a read that waits would keep the terminal open."""
    while not closing.is_set():
        is_last = ended.is_set()  # asked first: what the program wrote before its end is there by now
        if not select.select([terminal], [], [], 0.05)[0]:
            if is_last:
                return
            continue
        try:
            data = os.read(terminal, 65536)
        except OSError:
            return
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    os.close(terminal)


def obey():
    for line in sys.stdin:
        wanted = json.loads(line)
        if "type" in wanted:
            os.write(terminal, wanted["type"].encode())
        elif "columns" in wanted:
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, wanted["columns"], 0, 0))
        else:
            closing.set()


shower = threading.Thread(target=show, daemon=True)
shower.start()
threading.Thread(target=obey, daemon=True).start()
status = os.waitpid(pid, 0)[1]
ended.set()
shower.join()
code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
sys.stdout.buffer.write(f"\nexit {code}\n".encode())
sys.stdout.buffer.flush()
os._exit(0)
