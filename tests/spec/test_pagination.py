"""P11: streaming pagination inside an iteration. The specification's own examples run as printed, against real servers.

As printed, their SQL stands for a statement of the reader's own (`INSERT INTO ...`), which PostgreSQL refuses as a syntax error:
that is a run too, and its policies say what becomes of it. With a statement filled in, the same examples load every page.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from tests.engine import Played, play
from tests.servers import postgres_server, postgres_url  # noqa: F401 - fixtures

CANONICAL_STEP = """
  - step: fetch_transform_store
    spec:
      policy:
        admit:
          rules:
            - else:
                then: { allow: true }
    loop:
      spec:
        mode: sequential
      in: "{{ workload.endpoints }}"
      iterator: endpoint
    tool:
      - init:
          kind: noop
          spec:
            policy:
              rules:
                - else:
                    then:
                      do: continue
                      set_iter: { page: 1, has_more: true }
      - fetch_page:
          kind: http
          method: GET
          url: "{{ workload.api_url }}{{ iter.endpoint.path }}"
          params:
            page: "{{ iter.page }}"
            pageSize: "{{ iter.endpoint.page_size }}"
          spec:
            timeout: { connect: 5, read: 15 }
            policy:
              rules:
                - when: "{{ outcome.status == 'error' and outcome.http.status in [429,500,502,503,504] }}"
                  then: { do: retry, attempts: 10, backoff: exponential, delay: 2.0 }
                - when: "{{ outcome.status == 'error' }}"
                  then: { do: fail }
                - else:
                    then:
                      do: continue
                      set_iter:
                        has_more: "{{ outcome.result.data.paging.hasMore | default(false) }}"
                        page: "{{ outcome.result.data.paging.page | default(iter.page) }}"
                        items: "{{ outcome.result.data.data | default([]) }}"
      - save_page:
          kind: postgres
          auth: pg_k8s
          command: "INSERT INTO ..."
          spec:
            policy:
              rules:
                - when: "{{ outcome.status == 'error' and outcome.pg.code in ['40001','40P01'] }}"
                  then: { do: retry, attempts: 5, backoff: exponential, delay: 2.0 }
                - when: "{{ outcome.status == 'error' }}"
                  then: { do: fail }
                - else:
                    then: { do: continue }
      - paginate:
          kind: noop
          spec:
            policy:
              rules:
                - when: "{{ iter.has_more == true }}"
                  then:
                    do: jump
                    to: fetch_page
                    set_iter:
                      page: "{{ (iter.page | int) + 1 }}"
                - else:
                    then: { do: break }
    next:
      spec:
        mode: exclusive
      arcs:
        - step: validate_results
          when: "{{ event.name == 'loop.done' }}"
        - step: cleanup
          when: "{{ event.name == 'step.failed' }}"
"""

STREAMING_STEP = """
  - step: fetch_all_endpoints

    spec:
      policy:
        admit:
          rules:
            - else:
                then: { allow: true }
        lifecycle: { timeout_s: 600 }
        failure: { mode: best_effort }

    loop:
      in: "{{ workload.endpoints }}"
      iterator: endpoint
      spec:
        mode: parallel
        max_in_flight: 10
        policy:
          exec: distributed # optional intent

    tool:
      - name: init_iter
        kind: noop
        spec:
          policy:
            rules:
              - else:
                  then:
                    do: continue
                    set_iter: { page: 1, has_more: true }

      - name: fetch_page
        kind: http
        method: GET
        url: "{{ workload.api_url }}{{ iter.endpoint.path }}"
        params:
          page: "{{ iter.page }}"
          pageSize: "{{ iter.endpoint.page_size }}"
        spec:
          timeout: { connect: 5, read: 15 }
          policy:
            rules:
              - when: "{{ outcome.status == 'error' and outcome.http.status in [429,500,502,503,504] }}"
                then: { do: retry, attempts: 10, backoff: exponential, delay: 2.0 }
              - when: "{{ outcome.status == 'error' and outcome.http.status in [401,403] }}"
                then: { do: fail }
              - else:
                  then:
                    do: continue
                    set_iter:
                      http_status: "{{ outcome.http.status | default(200) }}"
                      has_more: "{{ outcome.result.data.paging.hasMore | default(false) }}"
                      page: "{{ outcome.result.data.paging.page | default(iter.page) }}"
                      items: "{{ outcome.result.data.data | default([]) }}"

      - name: route_by_status
        kind: noop
        spec:
          policy:
            rules:
              - when: "{{ iter.http_status == 404 }}"
                then: { do: jump, to: store_404 }
              - else:
                  then: { do: jump, to: store_200 }

      - name: store_200
        kind: postgres
        auth: pg_k8s
        command: "INSERT INTO results_ok (...)"
        spec:
          policy:
            rules:
              - when: "{{ outcome.status == 'error' and outcome.pg.code in ['40001','40P01'] }}"
                then: { do: retry, attempts: 5, backoff: exponential, delay: 2.0 }
              - when: "{{ outcome.status == 'error' }}"
                then: { do: fail }
              - else:
                  then: { do: jump, to: paginate }

      - name: store_404
        kind: postgres
        auth: pg_k8s
        command: "INSERT INTO results_not_found (...)"
        spec:
          policy:
            rules:
              - when: "{{ outcome.status == 'error' }}"
                then: { do: fail }
              - else:
                  then: { do: jump, to: paginate }

      - name: paginate
        kind: noop
        spec:
          policy:
            rules:
              - when: "{{ iter.has_more == true }}"
                then:
                  do: jump
                  to: fetch_page
                  set_iter:
                    page: "{{ (iter.page | int) + 1 }}"
              - else:
                  then: { do: break }

    next:
      spec:
        mode: exclusive
      arcs:
        - step: validate_results
          when: "{{ event.name == 'loop.done' }}"
        - step: cleanup
          when: "{{ event.name == 'step.failed' }}"
"""

PIPELINE_STEP = """
  - step: fetch_transform_store
    spec:
      policy:
        admit:
          rules:
            - else:
                then: { allow: true }
    tool:
      - fetch:
          kind: http
          method: GET
          url: "{{ workload.api_url }}/data"
          spec:
            policy:
              rules:
                - when: "{{ outcome.status == 'error' and outcome.http.status in [429,500,502,503,504] }}"
                  then: { do: retry, attempts: 5, backoff: exponential, delay: 2 }
                - when: "{{ outcome.status == 'error' }}"
                  then: { do: fail }
                - else:
                    then: { do: continue }
      - transform:
          kind: python
          args: { data: "{{ _prev }}" }
          code: |
            result = transform(data)
      - store:
          kind: postgres
          auth: pg_k8s
          command: "INSERT INTO ..."
          spec:
            policy:
              rules:
                - when: "{{ outcome.status == 'error' and outcome.pg.code in ['40001','40P01'] }}"
                  then: { do: retry, attempts: 5, backoff: exponential, delay: 2 }
                - when: "{{ outcome.status == 'error' }}"
                  then: { do: fail }
                - else:
                    then:
                      do: break
                      set_ctx: { store_ok: true }
    next:
      spec: { mode: exclusive }
      arcs:
        - step: continue
          when: "{{ event.name == 'step.done' and ctx.store_ok == true }}"
        - step: failed
          when: "{{ event.name == 'step.done' and ctx.store_ok != true }}"
        - step: failed
          when: "{{ event.name == 'step.failed' }}"
"""

AFTER = """
  - step: validate_results
    tool: {kind: noop, value: validated}
  - step: cleanup
    tool: {kind: noop, value: cleaned}
"""
AFTER_PIPELINE = """
  - step: continue
    tool: {kind: noop, value: continued}
  - step: failed
    tool: {kind: noop, value: failed}
"""

HEAD = """apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: example
  path: examples/example
  version: "2.0"
  description: Example playbook
keychain:
  - name: pg_k8s
    kind: postgres_credential
executor:
  kind: distributed
  spec:
    pool: default
    policy:
      results:
        reference_first: true
      limits:
        max_payload_bytes: 1048576
workload:
  api_url: "https://example.com"
  endpoints: []
workflow:
"""

SAVE = (
    "INSERT INTO results_ok (endpoint, page, items) VALUES (:endpoint, :page, :items)",
    'params: { endpoint: "{{ iter.endpoint.path }}", page: "{{ iter.page }}", items: "{{ iter.items | length }}" }',
)
LOST = (
    "INSERT INTO results_not_found (endpoint) VALUES (:endpoint)",
    'params: { endpoint: "{{ iter.endpoint.path }}" }',
)


class _Api(BaseHTTPRequestHandler):
    """/things/N has N items; /gone is 404; /flaky answers 503 twice before each page."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {key: int(values[0]) for key, values in parse_qs(parts.query).items()}
        failures = self.server.failures  # type: ignore[attr-defined]
        if parts.path == "/gone":
            self._reply(404, {"error": "no such thing"})
        elif parts.path == "/flaky" and failures.setdefault(query.get("page"), 0) < 2:
            failures[query.get("page")] += 1
            self._reply(503, {"error": "busy"})
        elif parts.path == "/data":
            self._reply(200, {"data": [1, 2, 3]})
        else:
            size, page = query["pageSize"], query["page"]
            total = 5 if parts.path == "/flaky" else int(parts.path.rpartition("/")[2])
            items = list(range(total))[(page - 1) * size : page * size]
            self._reply(200, {"data": items, "paging": {"page": page, "hasMore": page * size < total}})

    def _reply(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def api() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Api)
    server.failures = {}  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def tables(postgres_url: str) -> str:  # noqa: F811
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE results_ok (endpoint text, page int, items int)")
        connection.execute("CREATE TABLE results_not_found (endpoint text)")
    return postgres_url


def endpoints(*paths: str) -> list[dict[str, object]]:
    return [{"path": path, "page_size": 2} for path in paths]


def run_step(step: str, after: str, tmp_path: Path, api: str, url: str, paths: list[str]) -> Played:
    payload = {"api_url": api, "endpoints": endpoints(*paths)}
    return play(HEAD + step + after, tmp_path, payload, environ={"PENSTOCK_PG_K8S": url})


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.clause("P11.1")
def test_the_canonical_step_as_printed_runs_and_its_policy_takes_the_refused_statement(
    tmp_path: Path, api: str, tables: str
) -> None:
    run = run_step(CANONICAL_STEP, AFTER, tmp_path, api, tables, ["/things/3"])
    assert (run.status, run.result) == ("completed", "cleaned")
    refused = run.payloads("task.done")[-2]
    assert (refused["task"], refused["outcome"]["pg"]["code"], refused["do"]) == ("save_page", "42601", "fail")


@pytest.mark.clause("P11.1")
def test_the_canonical_step_with_a_statement_filled_in_loads_every_page(tmp_path: Path, api: str, tables: str) -> None:
    step = CANONICAL_STEP.replace('command: "INSERT INTO ..."', f'command: "{SAVE[0]}"\n          {SAVE[1]}')
    run = run_step(step, AFTER, tmp_path, api, tables, ["/things/3", "/things/4", "/things/0"])
    assert (run.status, run.result) == ("completed", "validated"), run.error
    assert sorted(rows(tables, "SELECT endpoint, page, items FROM results_ok")) == [
        ("/things/0", 1, 0),
        ("/things/3", 1, 2),
        ("/things/3", 2, 1),
        ("/things/4", 1, 2),
        ("/things/4", 2, 2),
    ]


@pytest.mark.clause("P11.1")
def test_the_streaming_example_as_printed_runs_to_its_loop_done(tmp_path: Path, api: str, tables: str) -> None:
    run = run_step(STREAMING_STEP, AFTER, tmp_path, api, tables, ["/things/3", "/gone"])
    assert (run.status, run.result) == ("completed", "validated")
    assert len(run.of("loop.iteration.failed")) == 2


@pytest.mark.clause("P11.1")
def test_the_streaming_example_with_statements_filled_in_stores_by_status(
    tmp_path: Path, api: str, tables: str
) -> None:
    step = STREAMING_STEP.replace('command: "INSERT INTO results_ok (...)"', f'command: "{SAVE[0]}"\n        {SAVE[1]}')
    step = step.replace('command: "INSERT INTO results_not_found (...)"', f'command: "{LOST[0]}"\n        {LOST[1]}')
    step = step.replace("delay: 2.0", "delay: 0.01")
    run = run_step(step, AFTER, tmp_path, api, tables, ["/things/5", "/gone", "/flaky", "/things/2"])
    assert (run.status, run.result) == ("completed", "validated"), run.error
    assert run.payloads("loop.done")[0]["result"]["done"] == 4
    stored = rows(tables, "SELECT endpoint, count(*), sum(items) FROM results_ok GROUP BY endpoint ORDER BY endpoint")
    assert stored == [("/flaky", 3, 5), ("/things/2", 1, 2), ("/things/5", 3, 5)]
    assert rows(tables, "SELECT endpoint FROM results_not_found") == [("/gone",)]
    attempts = [payload["attempt"] for payload in run.payloads("task.done") if payload["outcome"]["status"] == "error"]
    assert attempts.count(1) == 4  # three flaky pages and the missing one
    assert attempts.count(2) == 3


@pytest.mark.clause("P11.1")
def test_the_pipeline_example_as_printed_fails_at_its_unknown_function_and_routes_on(
    tmp_path: Path, api: str, tables: str
) -> None:
    run = run_step(PIPELINE_STEP, AFTER_PIPELINE, tmp_path, api, tables, [])
    assert (run.status, run.result) == ("completed", "failed")
    failed = run.payloads("step.failed")[0]["error"]
    assert "NameError" in failed["message"]


@pytest.mark.clause("P11.1")
def test_the_pipeline_example_with_its_parts_filled_in_threads_data_and_routes_by_ctx(
    tmp_path: Path, api: str, tables: str
) -> None:
    insert = "INSERT INTO results_ok (endpoint, page, items) VALUES ('all', 1, :n)"
    step = PIPELINE_STEP.replace("transform(data)", 'len(data["data"]["data"])')
    step = step.replace(
        'command: "INSERT INTO ..."', f'command: "{insert}"\n          params: {{ n: "{{{{ _prev }}}}" }}'
    )
    run = run_step(step, AFTER_PIPELINE, tmp_path, api, tables, [])
    assert (run.status, run.result) == ("completed", "continued"), run.error
    assert rows(tables, "SELECT items FROM results_ok") == [(3,)]
