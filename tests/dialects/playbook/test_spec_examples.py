"""The shapes in which streaming pagination and a fetch-transform-store pipeline are usually written compile as they stand."""

from penstock.kernel.net import Do, LoopMode
from tests.dialects.playbook.support import HEAD, codes, errors, net_of

LABELLED = """\
keychain:
  - name: pg_k8s
    kind: postgres_credential
executor:
  kind: distributed
  spec:
    pool: default
    policy:
      results: { reference_first: true }
      limits: { max_payload_bytes: 1048576 }
workload:
  api_url: "http://localhost"
  endpoints: [{ path: /a, page_size: 10 }]
workflow:
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
  - step: validate_results
  - step: cleanup
workbook:
  tasks: {}
"""

ROUTED = """\
keychain:
  - name: pg_k8s
    kind: postgres_credential
workload: { api_url: "http://localhost", endpoints: [] }
workflow:
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
          exec: distributed
    tool:
      - name: init_iter
        kind: noop
        spec:
          policy:
            rules:
              - else:
                  then:
                    do: continue
                    set_iter: { page: 1, has_more: true, http_status: 200 }
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
                  to: route_by_status
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
  - step: validate_results
  - step: cleanup
"""

TODAY = """\
workload: { temperature_c: 30, users: [{ name: Alice }] }
workbook:
  - name: compute_flag
    tool:
      kind: python
      input: { temperature_c: null }
      code: |
        result = {"is_hot": float(temperature_c) >= 25.0}
workflow:
  - step: start
    tool:
      kind: python
      input: {}
      code: |
        result = {"status": "initialized"}
    next:
      spec: { mode: exclusive }
      arcs:
        - step: eval_flag
  - step: eval_flag
    tool:
      kind: workbook
      name: compute_flag
      input:
        temperature_c: "{{ temperature_c }}"
    set:
      ctx.flag: "{{ eval_flag.is_hot }}"
    next:
      spec: { mode: exclusive }
      arcs:
        - step: each_user
          when: "{{ eval_flag.is_hot == true }}"
        - step: end
          when: "{{ eval_flag.is_hot == false }}"
  - step: each_user
    loop: { in: "{{ users }}", iterator: user, spec: { mode: sequential } }
    tool:
      - name: score
        kind: playbook
        path: scorer
        return_step: finalize
        input: { user_data: "{{ user }}" }
      - name: store
        kind: http
        url: "http://localhost/{{ user.name }}?s={{ score.value | default(0) }}"
        set:
          stored: "{{ output }}"
        spec:
          policy:
            rules:
              - when: "{{ output.error.retryable }}"
                then: { do: retry, attempts: 3, backoff: linear, delay: 1.0 }
              - else:
                  then: { do: continue, set: { ctx.last: "{{ output.data.data }}" } }
      - name: tell
        kind: python
        input: { response: "{{ stored }}" }
        code: result = response
    next: { arcs: [{ step: end }] }
  - step: end
    tool: { kind: noop }
"""


def test_streaming_pagination_with_label_maps_compiles_with_style_warnings_only():
    assert set(codes(HEAD + LABELLED)) == {"P0501"}
    node = net_of(HEAD + LABELLED).nodes["fetch_transform_store"]
    assert [task.label for task in node.tasks] == ["init", "fetch_page", "save_page", "paginate"]
    assert node.tasks[1].spec["timeout"] == {"connect": 5, "read": 15}
    rules = node.tasks[3].rules
    assert rules is not None
    assert [(rule.then.do, rule.then.to) for rule in rules] == [(Do.JUMP, "fetch_page"), (Do.BREAK, None)]


def test_streaming_pagination_with_storage_by_status_compiles_without_a_word():
    assert codes(HEAD + ROUTED) == []
    fan = net_of(HEAD + ROUTED).nodes["fetch_all_endpoints"].fan
    assert fan is not None
    assert (fan.mode, fan.max_in_flight, fan.failure.value) == (LoopMode.PARALLEL, 10, "best_effort")


def test_a_playbook_in_todays_words_compiles_without_a_warning():
    assert codes(HEAD + TODAY) == []
    assert errors(HEAD + TODAY) == []
