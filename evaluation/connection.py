"""A server's API, as measurements need it: calls, many at once."""

import concurrent.futures
import dataclasses
import functools
import pathlib
import re
import time

from evaluation import protocol
from evaluation.failure import BadInput, Failure

CONNECT_SECONDS = 10
CALL_SECONDS = 3600  # a call may wait behind all others


@dataclasses.dataclass(frozen=True)
class Strategy:
    """One that the server knows, with what it costs."""
    label: str  # as the user names it
    spec: str  # as the server is asked for it
    canonical: str
    num_leaders: int
    kv_bytes_per_token: int


@dataclasses.dataclass(frozen=True)
class Credentials:
    """Paths of files; empty: none.  As the flags of strata_generate."""
    api_key_file: str = ""  # its first key is sent
    tls_ca: str = ""  # PEM; set: the connection uses TLS
    tls_cert: str = ""  # PEM, for servers that want to see one
    tls_key: str = ""

    def metadata(self) -> list[tuple[str, str]]:
        """What every call carries."""
        if not self.api_key_file:
            return []
        for line in _read(self.api_key_file).splitlines():
            key = line.strip()
            if key and not key.startswith(b"#"):
                if not re.fullmatch(rb"[!-~]+", key):
                    raise BadInput(f"{self.api_key_file}: a key is printable "
                                   "ASCII without spaces")
                return [("authorization", f"Bearer {key.decode()}")]
        raise BadInput(f"{self.api_key_file}: holds no key")

    def channel(self, grpc, target: str, options):
        if bool(self.tls_cert) != bool(self.tls_key) or (
                self.tls_cert and not self.tls_ca):
            raise BadInput("--tls_cert and --tls_key go together, and with "
                           "--tls_ca")
        if not self.tls_ca:
            return grpc.insecure_channel(target, options=options)
        pem = [_read(path) if path else None
               for path in (self.tls_ca, self.tls_key, self.tls_cert)]
        return grpc.secure_channel(target, grpc.ssl_channel_credentials(*pem),
                                   options=options)


def _read(path: str) -> bytes:
    try:
        return pathlib.Path(path).read_bytes()
    except OSError:
        raise BadInput(f"{path}: cannot be read") from None


class Connection:
    """To the server at `target`, HOST:PORT.  Any thread may call any method."""

    def __init__(self, target: str, concurrency: int,
                 credentials: Credentials = Credentials()):
        self._pb, services = protocol.load()
        import grpc  # after load(), which says what is missing
        self._grpc = grpc
        self.target = target
        self.concurrency = concurrency
        self._metadata = credentials.metadata()
        self._channel = credentials.channel(grpc, target, options=[
            ("grpc.max_receive_message_length", -1)])
        try:
            grpc.channel_ready_future(self._channel).result(CONNECT_SECONDS)
        except grpc.FutureTimeoutError:
            self._channel.close()
            raise Failure(
                f"no server answers at {target}" +
                (", or its certificate and ours do not fit"
                 if credentials.tls_ca else
                 ", or it wants TLS (--tls_ca)")) from None
        self._inference = services.InferenceStub(self._channel)
        self._admin = services.AdminStub(self._channel)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._channel.close()

    @functools.cached_property
    def model(self):
        """GetModelResponse."""
        return self._call(self._inference.GetModel, self._pb.GetModelRequest())

    @functools.cached_property
    def _bos(self) -> list[int]:
        return self._tokenize(text="")

    def _tokenize(self, **what) -> list[int]:
        request = self._pb.TokenizeRequest(**what)
        return list(self._call(self._inference.Tokenize, request).token_ids)

    def tokenize(self, text: str, bos: bool = False) -> list[int]:
        """With a BOS only if asked for, and only where the model has one."""
        ids = self._tokenize(text=text)
        return ids if bos else ids[len(self._bos):]

    def tokenize_chat(self, content: str) -> list[int]:
        """One message of the user, up to where the model answers."""
        message = self._pb.ChatMessage(role="user", content=content)
        return self._tokenize(chat=self._pb.Chat(messages=[message]))

    def detokenize(self, ids: list[int]) -> str:
        """With control tokens as their text."""
        request = self._pb.DetokenizeRequest(token_ids=ids)
        return self._call(self._inference.Detokenize, request).text

    def score(self, ids: list[int], spec: str):
        """ScoreResponse."""
        return self._call(self._inference.Score, self._pb.ScoreRequest(
            tokens=self._pb.TokenIds(ids=ids),
            strategy=self._pb.Strategy(spec=spec)))

    def generate(self, ids: list[int], spec: str, max_tokens: int,
                 stop: list[str]):
        """Greedy: the text and its Usage."""
        _, text, usage = self._generate(
            ids, spec, self._pb.Sampling(temperature=0),
            self._pb.Stopping(max_tokens=max_tokens, stop=stop))
        return text, usage

    def sample(self, ids: list[int], seed: int, max_tokens: int):
        """At temperature 1, under `full`: the tokens and their text."""
        tokens, text, _ = self._generate(
            ids, "full", self._pb.Sampling(temperature=1, seed=seed),
            self._pb.Stopping(max_tokens=max_tokens))
        return tokens, text

    def _generate(self, ids, spec, sampling, stopping):
        """Tokens, text and Usage, once all have come."""
        request = self._pb.GenerateRequest(
            tokens=self._pb.TokenIds(ids=ids),
            strategy=self._pb.Strategy(spec=spec),
            sampling=sampling, stopping=stopping)
        responses = self._call(
            lambda *args, **options: list(
                self._inference.Generate(*args, **options)), request)
        return ([token for response in responses
                 for token in response.token_ids],
                "".join(response.text for response in responses),
                responses[-1].done.usage)

    def strategy(self, label: str, spec: str) -> Strategy:
        """Asks the server what `spec` is; BadInput if it knows none such."""
        try:
            usage = self.score([0, 0], spec).usage  # one position is cached
        except BadInput as failure:
            raise BadInput(f"strategy '{label}': {failure}") from None
        return Strategy(
            label=label, spec=spec, canonical=usage.strategy,
            num_leaders=usage.kv_bytes // self.model.page_bytes,
            kv_bytes_per_token=usage.kv_bytes // self.model.page_tokens)

    def register(self, named: dict[str, str]):
        """Registers strategies with the server: name to spec."""
        self._call(self._admin.SetPolicy, self._pb.SetPolicyRequest(
            register_strategies=[self._pb.NamedStrategy(name=name, spec=spec)
                                 for name, spec in named.items()]))

    def run_all(self, function, items) -> list:
        """function(item) of all items, `concurrency` at once, in order.

        The first failure ends all calls and the connection.
        """
        with concurrent.futures.ThreadPoolExecutor(self.concurrency) as pool:
            futures = [pool.submit(function, item) for item in items]
            try:
                for future in concurrent.futures.as_completed(futures):
                    future.result()
            except BaseException:  # Ctrl-C as well
                pool.shutdown(wait=False, cancel_futures=True)
                self._channel.close()
                raise
            return [future.result() for future in futures]

    def _call(self, method, request):
        code = self._grpc.StatusCode
        while True:
            try:
                return method(request, timeout=CALL_SECONDS,
                              metadata=self._metadata)
            except self._grpc.RpcError as error:
                metadata = dict(error.trailing_metadata() or ())
                if "retry-after-ms" not in metadata:
                    refused = error.code() in (
                        code.INVALID_ARGUMENT, code.NOT_FOUND,
                        code.FAILED_PRECONDITION)
                    if refused:
                        raise BadInput(f"the server at {self.target} says: "
                                       f"{error.details()}") from None
                    raise Failure(  # gRPC's words, where it has gone
                        f"a call of the server at {self.target} failed: "
                        f"{error.details()}") from None
            # Its queue is full.
            time.sleep(int(metadata["retry-after-ms"]) / 1000)
