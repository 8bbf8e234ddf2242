"""Several `kernmill serve` in a Ray cluster, behind one address of Ray Serve: docs/user/scaling.md.

    serve run --working-dir tools/scaling tools/scaling/ray_serve.yaml

Ray places the servers, checks them, and replaces one whose machine died. `Front` reads which adapter a request
wants, and sends it again when its server gave no answer. `AdapterRouter` picks the server.
"""

import asyncio
import hashlib
import json
import logging
import shlex
import subprocess
import time

import aiohttp
from ray import serve
from ray.serve.config import RequestRouterConfig
from ray.serve.request_router import RequestRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

# Seconds in which a server must be there; a plan of 12 GB may come from a slow disk.
START = 300
# Seconds in which a request is sent again, when no server gave an answer.
AGAIN = 60
# Starts in a row that may fail before Ray replaces a server, and how many seconds make a start a good one.
STARTS, GOOD = 3, 10
# Headers that concern one connection only.
HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "te", "trailer", "upgrade"}

log = logging.getLogger("ray.serve")


class AdapterRouter(RequestRouter):
    """Gives a request to the server that is first for its key, by rendezvous hashing.

    Servers are told apart by their rank, which a replacement takes over. One that has `max_ongoing_requests`
    gives the rest to the next.
    """

    # A machine that does much else answers late. Ray's 0.1 s would send its requests elsewhere.
    queue_len_response_deadline_s = 1

    async def choose_replicas(self, candidate_replicas, pending_request=None):
        if pending_request is None:
            return [candidate_replicas]
        # Without it, Ray asks again at once when all are full.
        pending_request.routing_context.should_backoff = True
        key, tried = pending_request.args[:2]

        def place(one):
            rank = one.replica_metadata.get("rank")
            return rank in tried, hashlib.sha256(f"{rank} {key}".encode()).digest()

        return [[one] for one in sorted(candidate_replicas, key=place)]


@serve.deployment(
    health_check_period_s=2,
    # More than `grace`, so that a drain is not cut.
    graceful_shutdown_timeout_s=90,
    graceful_shutdown_wait_loop_s=1,
    request_router_config=RequestRouterConfig(request_router_class=AdapterRouter),
)
class Server:
    """One `kernmill serve`, which is started again when it ends."""

    async def __init__(self, command, port, grace):
        self.rank = serve.get_replica_context().rank.rank
        self.port, self.grace = port + self.rank, grace
        # A server does not outlive this process: it drains when Ray kills it.
        self.command = ["setpriv", "--pdeathsig", "TERM", *shlex.split(command)]
        self.command += ["--port", str(self.port), "--grace", str(grace)]
        self.url = f"http://127.0.0.1:{self.port}"
        self.failures = 0
        # Answers take as long as they take.
        limits = aiohttp.ClientTimeout(total=None, sock_connect=2)
        # A request has the headers that its client gave it, and no others.
        auto = ["accept", "accept-encoding", "content-type", "user-agent"]
        self.client = aiohttp.ClientSession(timeout=limits, auto_decompress=False, skip_auto_headers=auto)
        self.start()
        self.watch = asyncio.create_task(self.keep())
        await self.wait()

    def start(self):
        self.since = time.monotonic()
        self.process = subprocess.Popen(self.command)

    async def wait(self):
        while await self.status("/ready") != 200:
            self.check_starts()
            if time.monotonic() - self.since > START:
                raise RuntimeError(f"{self.command} was not ready in {START} s")
            await asyncio.sleep(0.1)

    async def keep(self):
        """Starts the server again when it has ended."""
        while self.failures < STARTS:
            await asyncio.sleep(0.2)
            if self.process.poll() is not None:
                self.failures = self.failures + 1 if time.monotonic() - self.since < GOOD else 0
                log.warning(f"server {self.rank} ended with {self.process.returncode}, and is started again")
                self.start()

    async def status(self, path):
        """Status of a GET; 0 if nobody answers."""
        try:
            async with self.client.get(self.url + path, timeout=aiohttp.ClientTimeout(total=5)) as answer:
                return answer.status
        except (aiohttp.ClientError, TimeoutError):
            return 0

    def check_starts(self):
        if self.failures >= STARTS:
            raise RuntimeError(f"{self.command} ends as soon as it starts: the log of this replica says why")

    async def check_health(self):
        """Asked by Ray, which replaces a server that fails."""
        self.check_starts()
        if await self.status("/health") == 503:
            raise RuntimeError("the engine of this server has failed")

    def record_replica_metadata(self):
        """Asked by Ray, once, for `AdapterRouter`."""
        return {"rank": self.rank}

    async def forward(self, key, tried, method, path, headers, body):
        """Rank, status, headers and body of an answer; the body of a stream is None, and its pieces follow.
        `key` and `tried` are for the router."""
        begun = False
        try:
            async with self.client.request(method, self.url + path, headers=headers, data=body or None) as answer:
                head = self.rank, answer.status, dict(answer.headers)
                if answer.content_type == "text/event-stream":
                    begun = True
                    yield *head, None
                    async for piece in answer.content.iter_any():
                        yield piece
                else:
                    # Whole or not at all, so that it can be asked for again. This process can die between two items.
                    yield *head, await answer.read()
        except aiohttp.ClientError as error:
            if begun:
                # Some of these cannot be sent to another process.
                raise ConnectionError(f"{type(error).__name__}: {error}") from None
            yield self.rank, 0, {}, b""

    async def __del__(self):
        """Asked by Ray, when what ran here has ended."""
        self.watch.cancel()
        self.process.terminate()
        await asyncio.to_thread(self.process.wait, self.grace + 5)


@serve.deployment(max_ongoing_requests=4096, graceful_shutdown_timeout_s=90, graceful_shutdown_wait_loop_s=1)
class Front:
    """Passes requests on to the server of their adapter."""

    def __init__(self, servers):
        self.forward = servers.options(method_name="forward", stream=True)

    async def __call__(self, request: Request) -> Response:
        body = await request.body()
        key = request.headers.get("x-routing-key") or model_of(body)
        headers = {name: value for name, value in request.headers.items() if name not in HOP}
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        end, tries, tried = time.monotonic() + AGAIN, 0, []
        while True:
            answer = self.forward.remote(key, tried, request.method, path, headers, body)
            try:
                rank, status, own, whole = await anext(aiter(answer))
            except Exception as error:  # Ray has many kinds for a server that went away.
                log.warning(f"a server gave no answer: {type(error).__name__}")
                rank, status, own, whole = None, 0, {}, b""
            # One that has too much to do, or drains, leaves it to another.
            if status and (status != 503 or rank in tried):
                own = {name: value for name, value in own.items() if name.lower() not in HOP}
                own |= {"x-served-by": f"server-{rank}", "x-retries": str(tries)}
                if whole is not None:
                    return Response(whole, status, own)
                return StreamingResponse(self.pieces(answer), status, own)
            if time.monotonic() > end:
                text = f"no server gave an answer in {AGAIN} s"
                return JSONResponse({"error": {"message": text, "type": "server_error"}}, 503)
            tries += 1
            if rank is None or rank in tried:
                # All are away, or Ray has yet to notice.
                tried = []
                await asyncio.sleep(0.1)
            else:
                tried = [*tried, rank]

    async def pieces(self, answer):
        try:
            async for piece in answer:
                yield piece
        finally:
            # A client that went away wants no more.
            answer.cancel()


def model_of(body):
    """Name of the model in a request, or nothing."""
    try:
        return str(json.loads(body).get("model", ""))
    except (ValueError, AttributeError):
        return ""


def app(args):
    """The application. `command` starts a server; the first one listens at `port`, the next at the one after."""
    return Front.bind(Server.bind(args["command"], int(args.get("port", 8080)), int(args.get("grace", 60))))
