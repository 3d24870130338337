"""What is begun and does not come to its end is undone, whatever ended it: an error, a cancel, Ctrl-C.

connection = connect(url)
with unless_done(connection.close):
    prepare(connection)
return connection
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager


class unless_done:
    """Not a generator, which would be slow where every event passes."""

    __slots__ = ("_undo",)

    def __init__(self, undo: Callable[[], object]) -> None:
        self._undo = undo

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._undo()


@asynccontextmanager
async def unless_done_async(undo: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    async with AsyncExitStack() as undoing:
        undoing.push_async_callback(undo)
        yield
        undoing.pop_all()
