"""The processes of the hub of `up_stand_in.py`, a tiny web process and nothing else. It imports
nothing of the hub: it is executed for every start.
"""

import argparse
import os
import signal
import socket
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(os.getpid()).encode())

    def log_message(self, *args: object) -> None:
        pass


def web(fd: int, ready: Path) -> None:
    """Serve, or misbehave by STAND_IN_WEB and STAND_IN_UNFIT, a file with an exit status."""
    unfit = Path(os.environ.get("STAND_IN_UNFIT", "/nowhere"))
    if unfit.exists():
        sys.exit(int(unfit.read_text()))
    behaviour = os.environ.get("STAND_IN_WEB", "")
    if behaviour == "crash":
        sys.exit("cannot continue")
    if behaviour == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    server = HTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = socket.socket(fileno=fd)
    if behaviour != "stubborn":  # what it has accepted is answered
        signal.signal(signal.SIGTERM, lambda *_: Thread(target=server.shutdown).start())
    ready.touch()
    server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("--fd", type=int)
    parser.add_argument("--ready", type=Path)
    given, _ = parser.parse_known_args()
    if given.command == "web":
        web(given.fd, given.ready)


if __name__ == "__main__":
    main()
