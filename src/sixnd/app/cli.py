"""The command line: words in, a report out. No formula and no number stands here.

Each command lives in a file of its own and is imported when it is called. Exit status: 0 answered, and it fits; 1 it
does not fit or cannot be; 2 the words of the command; 3 something read is not understood.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sixnd import __version__
from sixnd.errors import SixndError

if TYPE_CHECKING:
    import cyclopts

COMMANDS = {
    "account": "what a step of a model costs, how long it takes, and whether it fits",
    "time": "how long a training run takes; or the devices, tokens, parameters or MFU it needs",
    "largest": "the largest model that a cluster can train",
    "roofline": "the roofline of machines, with the operations of a model as points",
    "einops": "what one line of einops costs: FLOPs, bytes, view or copy, order",
    "machines": "the catalogue of accelerators, with sources; `machines add` records your own",
    "models": "the models known by name, and the families a config.json may be of",
    "weights": "what is in a .safetensors file, by its header alone, beside its config",
    "lecture": "the claims of the lecture, each recomputed",
}
EXAMPLES = (
    "sixnd account llama-3-8b --on 8xh100",
    "sixnd account path/to/config.json --on 512xh100 --recompute full --explain",
    "sixnd time --params 70B --tokens 15T --on 1024xh100 --mfu 0.5",
    'sixnd einops "batch seq d, d k -> batch seq k" batch=8 seq=1024 d=4096 k=4096',
)
EXIT_USAGE = 2
EXIT_UNREADABLE = 3
EXIT_FAULT = 70


def front_page() -> str:
    """What `sixnd` alone says: the commands and how they are called. It needs no parser, so none is imported."""
    width = max(map(len, COMMANDS)) + 2
    commands = "\n".join(f"  {name:<{width}}{help}" for name, help in COMMANDS.items())
    examples = "\n".join(f"  {line}" for line in EXAMPLES)
    return (
        "sixnd: resource accounting for language models. Count it, predict it, measure it.\n\n"
        f"Usage: sixnd COMMAND [options]    (sixnd COMMAND --help for its options)\n\n{commands}\n\n"
        f"Every command prints tables; --json, --md and --csv change that, --html FILE writes a page as well.\n\n"
        f"Examples:\n{examples}"
    )


def make_app() -> cyclopts.App:
    """Put the commands together; none is imported before it is called."""
    import cyclopts

    app = cyclopts.App(
        name="sixnd",
        help="Resource accounting for language models: count it, predict it, measure it.",
        version=__version__,
        help_format="plaintext",
        result_action="return_value",
    )
    for name, help in COMMANDS.items():
        app.command(f"sixnd.app.{name}_command:{name}", name=name, help=help)
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status, with every error as one sentence on stderr."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words in (["--help"], ["-h"], ["help"]):
        print(front_page())
        return 0
    import cyclopts

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
    except OSError as error:  # a full disk behind stdout; files that are read and written refuse by name
        return _refuse(f"the output cannot be written: {error.strerror or error}", EXIT_UNREADABLE)
    except Exception as error:
        if os.environ.get("SIXND_TRACE"):
            raise
        return _refuse(f"a fault of sixnd's own, {error!r}: please report it, with SIXND_TRACE=1 set", EXIT_FAULT)
    return status if isinstance(status, int) else 0


def _refuse(message: str, status: int) -> int:
    print(f"sixnd: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
