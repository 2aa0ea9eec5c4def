"""A kernel that is started, asked to execute cells, interrupted and restarted, as Jupyter does it."""

import queue
import sys
import time
from pathlib import Path

from jupyter_client import KernelManager

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "notebooks/make"))
from kernel_spec import KERNEL  # noqa: E402
from run_notebook import ERROR  # noqa: E402

TO_START = 60     # seconds: against hanging, not for measuring
BUSY_FOR = 0.5    # seconds between the beginning of a cell and its interrupt, and from that to the next look
A_MOMENT = 0.2


class KernelFailed(Exception):
    """What the kernel did not do, as the end of a sentence, and what the cell had put out."""

    def __init__(self, why, outputs=()):
        super().__init__(why)
        self.outputs = list(outputs)


def texts_of(outputs):
    """What a cell put out that can be printed."""
    for output in outputs:
        if output["output_type"] == "stream":
            yield output["text"]
        elif output["output_type"] == "error":
            yield f"{output['ename']}: {output['evalue']}"


class KernelSession:
    def __init__(self, folder, environment):
        self.manager = KernelManager(kernel_name=KERNEL)
        self.manager.start_kernel(cwd=str(folder), env=environment)
        self.client = None
        self._connect()

    def _connect(self):
        self.client = self.manager.client()
        self.client.start_channels(hb=False)  # whether the kernel lives, the manager knows, and without a pause at the end
        try:
            self.client.wait_for_ready(timeout=TO_START)
            self._wait_until_heard()
        except RuntimeError as error:
            self.close()
            raise KernelFailed(f"the kernel does not start: {error}") from error

    def _wait_until_heard(self):
        """What a kernel tells everybody reaches us only some time after it has answered for the first time."""
        deadline = time.monotonic() + TO_START
        while time.monotonic() < deadline:
            asked = self.client.kernel_info()
            try:
                while self.client.get_iopub_msg(timeout=A_MOMENT)["parent_header"].get("msg_id") != asked:
                    pass
                return
            except queue.Empty:
                pass
        raise RuntimeError("nothing that it tells everybody is heard")

    def run(self, source, limit, interrupted=False):
        """Executes a cell and returns what it put out, in the form in which notebooks keep it. Throws KernelFailed when the
        cell fails, the kernel ends, or the limit is over. A cell that is to be interrupted may fail."""
        outputs, deadline = [], time.monotonic() + limit
        asked = self.client.execute(source, allow_stdin=False)
        while True:
            message = self._next(self.client.get_iopub_msg, asked, deadline, outputs)
            content, kind = message["content"], message["msg_type"]
            if interrupted and kind == "status" and content["execution_state"] == "busy":
                time.sleep(BUSY_FOR)
                self.manager.interrupt_kernel()
            if kind == "status" and content["execution_state"] == "idle":
                break
            if kind in ("stream", "display_data", "execute_result", "error"):
                outputs.append({"output_type": kind, **{key: content[key] for key in _KEPT[kind]}})
        reply = self._next(self.client.get_shell_msg, asked, deadline, outputs)["content"]
        if interrupted:
            return outputs
        if reply["status"] != "ok" or any(output["output_type"] == "error" for output in outputs):
            raise KernelFailed(f"an error: {reply.get('ename', '')} {reply.get('evalue', '')}".rstrip(" :"), outputs)
        # An interpreter that can't compile a cell does not always tell Jupyter.
        if any(ERROR.search(output["text"]) for output in outputs if output.get("name") == "stderr"):
            raise KernelFailed("an error on standard error", outputs)
        return outputs

    def _next(self, receive, asked, deadline, outputs):
        """The next message that answers what was asked."""
        while time.monotonic() < deadline:
            try:
                message = receive(timeout=A_MOMENT)
            except queue.Empty:
                if not self.manager.is_alive():
                    raise KernelFailed("the kernel ended", outputs) from None
                continue
            if message["parent_header"].get("msg_id") == asked:
                return message
        raise KernelFailed("no end within the limit", outputs)

    def interrupt_idle(self):
        self.manager.interrupt_kernel()
        time.sleep(BUSY_FOR)
        if not self.manager.is_alive():
            raise KernelFailed("the kernel ended")

    def restart(self):
        self.client.stop_channels()
        self.manager.restart_kernel()
        self._connect()

    def close(self):
        if self.client is not None:
            self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


_KEPT = {"stream": ("name", "text"), "display_data": ("data", "metadata"),
         "execute_result": ("data", "metadata", "execution_count"), "error": ("ename", "evalue", "traceback")}
