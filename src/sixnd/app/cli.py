"""The command line: words in, a report out. No formula and no number stands here.

Each command lives in a file of its own and is imported when it is called. Exit status: 0 answered, and it fits; 1 it
does not fit or cannot be; 2 the words of the command; 3 something read is not understood.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import cyclopts

from sixnd import __version__
from sixnd.errors import SixndError

COMMANDS = {
    "account": "What a step of a model costs, how long it takes, and whether it fits: the main job.",
    "time": "How long a training run takes; or how many devices, tokens or parameters, or what MFU.",
    "largest": "The largest model that a cluster can train.",
    "roofline": "The roofline of machines, with the operations of a model as points.",
    "einops": "What one line of einops costs: FLOPs, bytes, view or copy, order of contraction.",
    "machines": "The catalogue of accelerators, with sources; `machines add` records your own.",
    "models": "The models known by name, and the families that a config.json may be of.",
    "weights": "What is in a .safetensors file, by its header alone, beside its config.",
    "lecture": "The claims of the lecture, each recomputed.",
}
EXIT_DOES_NOT_FIT = 1
EXIT_USAGE = 2
EXIT_INTERNAL = 70


def make_app() -> cyclopts.App:
    """Put the commands together; none is imported before it is called."""
    app = cyclopts.App(
        name="sixnd",
        help="Resource accounting for language models: count it, predict it, measure it.",
        version=__version__,
        help_format="plaintext",
        version_flags=["--version"],
        result_action="return_value",
    )
    for name, help in COMMANDS.items():
        app.command(f"sixnd.app.{name}_command:{name}", name=name, help=help)
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status, with every error as one sentence on stderr."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        status = make_app()(words, exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except cyclopts.CycloptsError as error:
        return _refuse(" ".join(str(error).split()), EXIT_USAGE)
    except SixndError as error:
        return _refuse(str(error), error.exit_code)
    except BrokenPipeError:  # the reader, such as `head`, has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return status if isinstance(status, int) else 0


def _refuse(message: str, status: int) -> int:
    print(f"sixnd: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
