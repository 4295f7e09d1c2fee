"""Serve the REST protocol of Iceberg on this machine, backed by pyiceberg's SQL catalogue."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NamespaceAlreadyExistsError, NoSuchTableError
from pyiceberg.table import CommitTableRequest

#: The catalogue refuses every request without this token.
TOKEN = "a-token-of-this-test-alone"
_FAILURES = {NoSuchTableError: 404, NamespaceAlreadyExistsError: 409, CommitFailedException: 409}


@contextmanager
def rest_catalog(folder: Path, requests: list[str], **settings: str) -> Iterator[str]:
    """Yield the address of a catalogue whose tables are in an SQLite file of the folder.

    Parameters
    ----------
    requests : list of str
        Method and path of each request are appended here.
    settings : str
        Of pyiceberg, for the store with the files.
    """
    catalog = SqlCatalog("rest", uri=f"sqlite:///{folder}/rest.db", **settings)
    turn = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def respond(self) -> None:
            requests.append(f"{self.command} {self.path}")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                return self.answer(
                    401, {"error": {"message": "no token", "type": "NotAuthorized", "code": 401}}
                )
            steps = [unquote(step) for step in self.path.partition("?")[0].strip("/").split("/")[1:]]
            try:
                with turn:
                    return self.answer(200, _answer(catalog, self.command, steps, body))
            except tuple(_FAILURES) as error:
                code = _FAILURES[type(error)]
                content = {"message": str(error), "type": type(error).__name__, "code": code}
                return self.answer(code, {"error": content})

        do_GET = do_POST = do_DELETE = respond

        def answer(self, code: int, content: object) -> None:
            text = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def _answer(catalog: SqlCatalog, method: str, steps: list[str], body: bytes) -> object:
    match method, steps:
        case "GET", ["config"]:
            return {"defaults": {}, "overrides": {}}
        case "POST", ["namespaces"]:
            catalog.create_namespace(tuple(json.loads(body)["namespace"]))
            return {"namespace": json.loads(body)["namespace"], "properties": {}}
        case "POST", ["namespaces", namespace, "tables"]:
            wanted = CreateTableRequest.model_validate_json(body)
            name = (*namespace.split("\x1f"), wanted.name)
            catalog.create_table(
                name, wanted.table_schema, location=wanted.location, properties=wanted.properties
            )
        case "POST", ["namespaces", namespace, "tables", table]:
            wanted = CommitTableRequest.model_validate_json(body)
            name = (*namespace.split("\x1f"), table)
            answer = catalog.commit_table(catalog.load_table(name), wanted.requirements, wanted.updates)
            return answer.model_dump_json(by_alias=True).encode()
        # the format in which a scan of Spark reports it
        case "POST", ["namespaces", _, "tables", _, "metrics"]:
            return {}
        case "DELETE", ["namespaces", namespace, "tables", table]:
            catalog.drop_table((*namespace.split("\x1f"), table))
            return {}
        case "GET", ["namespaces", namespace, "tables", table]:
            name = (*namespace.split("\x1f"), table)
    found = catalog.load_table(name)
    metadata = json.loads(found.metadata.model_dump_json(by_alias=True))
    return {"metadata-location": found.metadata_location, "metadata": metadata, "config": {}}
