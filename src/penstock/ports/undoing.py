"""What is begun and does not come to its end is undone, whatever ended it: an error, a cancel, Ctrl-C.

connection = connect(url)
with unless_done(connection.close):
    prepare(connection)
return connection
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager


@contextmanager
def unless_done(undo: Callable[[], object]) -> Iterator[None]:
    with ExitStack() as undoing:
        undoing.callback(undo)
        yield
        undoing.pop_all()


@asynccontextmanager
async def unless_done_async(undo: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    async with AsyncExitStack() as undoing:
        undoing.push_async_callback(undo)
        yield
        undoing.pop_all()
