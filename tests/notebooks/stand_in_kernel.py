"""A kernel that speaks Jupyter's protocol and knows no C++: it does what the comments of a cell say.

    // out: TEXT    // err: TEXT    // svg: PICTURE    // fail: TEXT    // end    // hang    // arguments

It also knows the few statements that real_kernel.py sends of its own: a name that is defined once, a question for its value,
and a lesson that begins, waits or talks. After `-f CONNECTION_FILE` on its command line, words say how it behaves:
--ends-when-idle or --ends-when-busy when it is interrupted, --deaf when it goes on as if nothing had happened, --silent when it
stops without a word, --stuck when its next step waits as well, or --starts-once, which leaves a file at this path.
"""

import json
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

import zmq
from jupyter_client.session import Session

WORDS = sys.argv[1:]
connection = json.loads(Path(WORDS[WORDS.index("-f") + 1]).read_text(encoding="utf-8"))


class Failed(Exception):
    """A cell that fails, as a kernel tells it."""


class StandInKernel:
    def __init__(self):
        context = zmq.Context.instance()
        self.session = Session(key=connection["key"].encode(), signature_scheme=connection["signature_scheme"])
        self.shell, self.control, self.iopub, self.stdin, self.heart = (
            self.bound(context.socket(kind), channel)
            for kind, channel in ((zmq.ROUTER, "shell"), (zmq.ROUTER, "control"), (zmq.PUB, "iopub"), (zmq.ROUTER, "stdin"),
                                  (zmq.REP, "hb")))
        threading.Thread(target=self.beat, daemon=True).start()
        self.known, self.count, self.interrupted, self.busy, self.ranks_wait = {}, 0, False, False, False
        signal.signal(signal.SIGINT, self.interrupt)

    @staticmethod
    def bound(socket, channel):
        socket.bind(f"{connection['transport']}://{connection['ip']}:{connection[channel + '_port']}")
        return socket

    def beat(self):
        while True:
            self.heart.send(self.heart.recv())

    def interrupt(self, *_):
        if ("--ends-when-busy" if self.busy else "--ends-when-idle") in WORDS:
            os._exit(1)
        self.interrupted = True

    def serve(self):
        poller = zmq.Poller()
        poller.register(self.shell, zmq.POLLIN)
        poller.register(self.control, zmq.POLLIN)
        while True:
            for socket, _ in poller.poll():
                identities, parts = self.session.feed_identities(socket.recv_multipart())
                self.answer(socket, identities, self.session.deserialize(parts))

    def answer(self, socket, identities, request):
        self.publish("status", {"execution_state": "busy"}, request)
        kind = request["msg_type"]
        content = {"status": "ok"}
        if kind == "kernel_info_request":
            content.update(protocol_version="5.3", implementation="stand-in", implementation_version="1", banner="",
                           language_info={"name": "c++", "version": "17", "mimetype": "text/x-c++src", "file_extension": ".cpp"})
        elif kind == "execute_request":
            content = self.execute(request)
        self.session.send(socket, kind.replace("_request", "_reply"), content, parent=request, ident=identities)
        self.publish("status", {"execution_state": "idle"}, request)
        if kind == "shutdown_request":
            sys.exit(0)

    def publish(self, kind, content, request):
        self.session.send(self.iopub, kind, content, parent=request, ident=kind.encode())

    def execute(self, request):
        self.count += 1
        self.busy, self.interrupted = True, False
        try:
            self.run(request["content"]["code"], request)
            return {"status": "ok", "execution_count": self.count, "user_expressions": {}, "payload": []}
        except Failed as failure:
            error = {"ename": "Failed", "evalue": str(failure), "traceback": []}
            self.publish("error", error, request)
            return {"status": "error", "execution_count": self.count, **error}
        finally:
            self.busy = False

    def run(self, code, request):
        for what, text in re.findall(r"^// (\w+):? ?(.*)$", code, re.MULTILINE):
            if what in ("out", "err", "arguments"):
                text = " ".join(WORDS) if what == "arguments" else text
                self.publish("stream", {"name": "stderr" if what == "err" else "stdout", "text": text + "\n"}, request)
            elif what == "svg":
                data = {"image/svg+xml": text, "text/plain": "in words"}
                self.publish("display_data", {"data": data, "metadata": {}, "transient": {}}, request)
            elif what == "fail":
                raise Failed(text)
            elif what == "end":
                os._exit(0)
            elif what == "hang":
                time.sleep(1000)
        for name, value in re.findall(r"^int (\w+) = (\d+);$", code, re.MULTILINE):
            if name in self.known:
                raise Failed(f"redefinition of {name}")
            self.known[name] = value
        for name, value in re.findall(r"^if \((\w+) != (\d+)\) throw", code, re.MULTILINE):
            if self.known.get(name) != value:
                raise Failed(f"{name} is not {value}")
        if "probe.emplace(" in code:
            self.ranks_wait = self.ranks_wait and "--stuck" in WORDS
        if "probe_talk);" in code and self.ranks_wait:
            raise Failed("the ranks still wait")
        if "probe_wait);" in code:
            self.ranks_wait = True
            while "--deaf" in WORDS or not self.interrupted:
                time.sleep(0.01)
            if "--silent" in WORDS:
                return
            raise Failed("interrupted: by somebody")


if "--starts-once" in WORDS:
    mark = Path(WORDS[WORDS.index("--starts-once") + 1])
    if mark.exists():
        sys.exit(1)
    mark.touch()
StandInKernel().serve()
