"""Whether the parts of a running stack answer: a process that is there may do nothing at all."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import psutil
import redis

from cli.stack.addresses import API, FLOWER, POSTGRES, VALKEY
from cli.stack.children import ChildState
from cli.stack.observations import Observation
from cli.stack.run_file import RunningChild, RunningStack
from db.engine import make_engine, translated
from halldetect.errors import HallDetectError
from queues.names import Queue

REDIS = "redis"  # where it is none of ours

_ANSWER_SECONDS = 5.0
_HALTED = "is halted (kill -CONT lets it go on)"
NO_ANSWER = "does not answer"
_NO_REPORT = "does not report"


def unanswered(stack: RunningStack, observation: Observation) -> dict[str, str]:
    """Ask all parts of a stack at once.

    Parameters
    ----------
    stack : RunningStack
        Of its processes only those are asked that are said to run.
    observation : Observation
        What the workers report, since nobody can ask them.

    Returns
    -------
    dict of str to str
        The parts that do not do their work, by name, each with what is the matter.
    """
    running = [child for child in stack.children if child.state is ChildState.RUNNING]
    names = {child.name for child in stack.children}
    asked: dict[str, Callable[[], bool]] = {
        API: lambda: _serves(f"{stack.api_url}/healthz"),
        FLOWER: lambda: _serves(stack.flower_url),
        POSTGRES: lambda: _takes_connections(stack.database_url),
        VALKEY: lambda: redis_answers(stack.redis_url),
    }
    halted = {child.name: _HALTED for child in running if _is_halted(child)}
    questions = {
        child.name: asked[child.name]
        for child in running
        if child.name in asked and child.name not in halted
    }
    if VALKEY not in names:
        questions[REDIS] = asked[VALKEY]
    found = {name: NO_ANSWER for name, answers in _ask(questions).items() if not answers}
    return found | unreported(stack, observation) | halted


def unreported(stack: RunningStack, observation: Observation) -> dict[str, str]:
    """Return the workers of a stack that run and have not reported for long, with the matter."""
    if observation.fault is not None or not observation.is_known:
        return {}  # nobody knows
    return {
        child.name: _NO_REPORT
        for child in stack.children
        if child.state is ChildState.RUNNING
        and _is_worker(child)
        and observation.worker(child.pid) is None
    }


def redis_answers(url: str) -> bool:
    """Tell whether Redis answers a PING soon."""
    try:
        with redis.Redis.from_url(
            url, socket_timeout=_ANSWER_SECONDS, socket_connect_timeout=_ANSWER_SECONDS
        ) as client:
            return bool(client.ping())
    except (redis.RedisError, OSError, ValueError):
        return False


def _ask(questions: Mapping[str, Callable[[], bool]]) -> dict[str, bool]:
    with ThreadPoolExecutor(max(1, len(questions))) as pool:
        asked = {name: pool.submit(question) for name, question in questions.items()}
    return {name: answer.result() for name, answer in asked.items()}


def _serves(url: str) -> bool:
    """Tell whether an HTTP server answers soon, be it that we are not let in."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(
        place.hostname or "", place.port, timeout=_ANSWER_SECONDS
    )
    try:
        connection.request("GET", place.path or "/")
        return connection.getresponse().status < http.HTTPStatus.INTERNAL_SERVER_ERROR
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _takes_connections(database_url: str) -> bool:
    engine = make_engine(database_url, pool_size=1)
    try:
        with translated():
            engine.connect().close()
    except HallDetectError:
        return False
    finally:
        engine.dispose()
    return True


def _is_worker(child: RunningChild) -> bool:
    return child.name.partition("-")[0] in set(Queue)


def _is_halted(child: RunningChild) -> bool:
    try:
        return child.pid is not None and bool(
            psutil.Process(child.pid).status() == psutil.STATUS_STOPPED
        )
    except psutil.Error:  # it has just ended, which its supervisor notices
        return False
