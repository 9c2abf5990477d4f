"""How often a key may be used, and how often an address may be wrong about keys.

Both are counted in this process. Neither asks the database, so that whoever is over the limit
costs it nothing.
"""

from __future__ import annotations

import ipaddress
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from api.problems import Kind, Problem
from api.token_buckets import TokenBuckets

WRONG_KEYS_PER_MINUTE = 30
_MOST_OWNERS = 1_000
# Who has one address of such a network has all of them.
_IPV6_NETWORK = 64


class RequestRates:
    """Limits the requests with each secret, and the unknown secrets from each address.

    A secret that was found in the database before is not held up by what others send from the same
    address, such as a proxy's. Its digest is remembered, as long as not too many are.

    Parameters
    ----------
    per_minute : int
        Requests a minute with one secret; as many may come at once.
    clock : callable
        See `TokenBuckets`.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._requests = TokenBuckets(per_minute, most_owners=_MOST_OWNERS, clock=clock)
        self._wrong = TokenBuckets(WRONG_KEYS_PER_MINUTE, most_owners=_MOST_OWNERS, clock=clock)
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def admit(self, digest: bytes, address: str) -> None:
        """Let a request pass that comes with a secret of this digest, before it is looked up.

        Raises
        ------
        Problem
            429, when there were too many.
        """
        if self._is_known(digest):
            self._count_request(digest)
        # Requests that are being looked up at this moment are not counted yet: there are no more
        # of them than threads.
        elif wait := self._wrong.seconds_until_one(_network(address)):
            raise _too_many("unknown API keys came from this address too often", wait)

    def note_found(self, digest: bytes) -> None:
        """Note that the secret is, or was, a key's.

        Raises
        ------
        Problem
            429, when there were too many requests with it.
        """
        if not self._is_known(digest):
            self._remember(digest)
            self._count_request(digest)

    def note_unknown(self, address: str) -> None:
        """Note that the secret is nobody's."""
        self._wrong.take(_network(address))

    def _count_request(self, digest: bytes) -> None:
        if wait := self._requests.take(digest):
            raise _too_many(
                f"this API key may make {self._per_minute:,} requests a minute "
                "(HALLDETECT_REQUESTS_PER_MINUTE)",
                wait,
            )

    def _is_known(self, digest: bytes) -> bool:
        with self._lock:
            return digest in self._known

    def _remember(self, digest: bytes) -> None:
        with self._lock:
            self._known[digest] = None
            if len(self._known) > _MOST_OWNERS:
                self._known.popitem(last=False)


def _network(address: str) -> str:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:  # no address is known, as over a Unix socket
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), _IPV6_NETWORK), strict=False))


def _too_many(reason: str, wait: float) -> Problem:
    seconds = math.ceil(wait)
    return Problem(
        429,
        Kind.TOO_MANY_REQUESTS,
        f"{reason}: try again in {seconds} s",
        headers={"Retry-After": str(seconds)},
    )
