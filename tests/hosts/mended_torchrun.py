"""PyTorch's own torchrun. That of PyTorch 1 does not run on Python 3.11, which no longer counts zero as a member of a flag: it
takes its own default of --redirects, 0, for None."""

from torch.distributed.elastic.multiprocessing.api import Std
from torch.distributed.run import main

of_text = Std.from_str


def from_str(text):
    found = of_text(text)
    return Std.NONE if found is None else found


Std.from_str = from_str
main()
