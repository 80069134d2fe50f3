"""``getd serve``."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from getd.cli.options import RunPath
from getd.cli.output import print_line, print_notices


def serve(
    run: RunPath,
    /,
    *,
    host: Annotated[str, Parameter(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Parameter(help="Port to listen on.")] = 8000,
    token: Annotated[
        str | None,
        Parameter(help="Token that requests must send. Default: the GETD_TOKEN variable."),
    ] = None,
    timeout: Annotated[float, Parameter(help="Time limit for a request, in seconds.")] = 30.0,
    max_body: Annotated[int, Parameter(help="Size limit for a request, in bytes.")] = 1 << 20,
    batching: Annotated[bool, Parameter(help="Answer simultaneous requests together.")] = True,
) -> None:
    """Serve a run over HTTP: an API, and a web page at /."""
    from getd.api import serve as serve_run

    def on_ready(address: str, notices: Sequence[str]) -> None:
        print_notices(notices)
        print_line(f"serving {run} at {address} (Ctrl-C to stop)")

    # It returns when it is interrupted.
    serve_run(
        run,
        host=host,
        port=port,
        token=token,
        timeout=timeout,
        max_body=max_body,
        batching=batching,
        on_ready=on_ready,
    )
