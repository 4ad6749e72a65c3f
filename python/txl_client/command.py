"""Programs of the package: flags that reach a server, messages, exit statuses.

The flags, their environment variables and the exit statuses are those of txl.
"""

from __future__ import annotations

import argparse
import math
import os
import pathlib
import sys
from collections.abc import Callable, Iterable

from txl_client.channel import ClientOptions, Settings, bearer_key
from txl_client.errors import TxlError

FAILED = 1
USAGE = 2  # also for an input file that is not what it should be
INTERRUPTED = 130


def number(text: str) -> float:
    """The value of a flag; it may be infinite or NaN."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number") from None


def finite(text: str) -> float:
    """The value of a flag."""
    value = number(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    return value


def whole(text: str) -> int:
    """The value of a flag."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a whole number") from None


def add_server_flags(parser: argparse.ArgumentParser, address: str,
                     default: str) -> None:
    """The flags of every program; `address` describes that of --server."""
    parser.add_argument("--server", metavar="ADDRESS", default=default,
                        help=f"{address} (default: %(default)s)")
    parser.add_argument("--ca", metavar="FILE",
                        help="PEM file with the roots to trust")
    parser.add_argument("--tls-cert", metavar="FILE",
                        help="PEM file with the client certificate")
    parser.add_argument("--tls-key", metavar="FILE",
                        help="PEM file with the certificate's private key")
    parser.add_argument("--key-file", metavar="FILE",
                        default=os.environ.get("TXL_KEY_FILE"),
                        help="file with the API key, for a server with --keys "
                        "[$TXL_KEY_FILE]")
    parser.add_argument("--timeout", metavar="SECONDS", type=number, default=0,
                        help="longest time of a call with all its attempts, "
                        "0: no limit (default: 0)")
    parser.add_argument("--in-flight", metavar="N", type=whole,
                        default=Settings.in_flight,
                        help="calls at a time (default: %(default)s)")


def client_options(arguments: argparse.Namespace) -> ClientOptions:
    """The options that the flags of add_server_flags() give."""
    options = ClientOptions(in_flight=arguments.in_flight)
    if arguments.timeout:
        options["timeout"] = arguments.timeout
    if arguments.ca:
        options["ca"] = arguments.ca
    if arguments.tls_cert:
        options["cert"] = arguments.tls_cert
    if arguments.tls_key:
        options["key"] = arguments.tls_key
    if arguments.key_file:
        try:
            options["bearer"] = bearer_key(
                pathlib.Path(arguments.key_file).read_text("utf-8-sig"))
        except UnicodeDecodeError:
            raise ValueError(f"{arguments.key_file}: is not UTF-8") from None
        except ValueError:
            raise ValueError(f"{arguments.key_file}: holds no key") from None
    return options


def refuse_inputs(written: Iterable[pathlib.Path],
                  read: Iterable[pathlib.Path]) -> None:
    """ValueError for a file that would be written, and is one that is read."""
    inputs = {_identity(file) for file in read if file.exists()}
    for file in written:
        if file.exists() and _identity(file) in inputs:
            raise ValueError(f"{file}: is the input")


def refuse_devices(files: Iterable[pathlib.Path]) -> None:
    """ValueError for a pipe, a terminal or another device."""
    for file in files:
        if file.exists() and not (file.is_file() or file.is_dir()):
            raise ValueError(f"{file}: must be a regular file; it is a pipe "
                             "or a device")


def _identity(file: pathlib.Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_dev, found.st_ino


def with_new(files: Iterable[pathlib.Path]) -> list[pathlib.Path]:
    """Files, each with NAME.new, in which its new content is written."""
    return [each for file in files
            for each in (file, file.parent / f"{file.name}.new")]


def say(program: str, message: str) -> None:
    """A line on standard error."""
    print(f"{program}: {message}", file=sys.stderr, flush=True)


def run(program: str, work: Callable[[], int]) -> int:
    """The exit status of `work`, whose exceptions become messages.

    A ValueError or TypeError is a mistake of the user.
    """
    try:
        return work()
    except (ValueError, TypeError) as error:
        say(program, str(error))
        return USAGE
    except (TxlError, OSError) as error:
        say(program, str(error))
        return FAILED
    except KeyboardInterrupt:
        say(program, "interrupted")
        return INTERRUPTED
