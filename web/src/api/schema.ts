// Made by `make web-client` from the OpenAPI document. Do not edit.

export interface paths {
    "/api/alerts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the alerts */
        get: operations["triggers_alerts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/alerts/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Make or change an alert
         * @description It tells of what happens from now on. Secrets are named, and kept in the keychain of the servers.
         */
        put: operations["triggers_put_alert"];
        post?: never;
        /** Delete an alert */
        delete: operations["triggers_drop_alert"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/alerts/{name}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What an alert has told, and what it has still to tell */
        get: operations["triggers_deliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/alerts/{name}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send a test of an alert, now */
        post: operations["triggers_test_alert"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/compare": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Two runs side by side */
        get: operations["pages_compare"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/documents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the catalog */
        get: operations["documents_listing"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/documents/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A document: its newest version, or the one that is asked for */
        get: operations["documents_get"];
        /**
         * Keep a document, or a project
         * @description Only what can run is kept. The same content again is the same version; other content is the next one. A project needs a token with the scope `admin`: its plug-ins run in the server.
         */
        put: operations["documents_put"];
        post?: never;
        /**
         * Take a document out of the catalog
         * @description All its versions. Runs of it stay as they are.
         */
        delete: operations["documents_delete"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/examine": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A document as it is being written: problems, graph, form */
        post: operations["pages_examine"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List runs */
        get: operations["executions_listing"];
        put?: never;
        /** Start a run */
        post: operations["executions_submit"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Show a run
         * @description As `penstock show --json` prints it. `run` is an id, a unique beginning of one, a label, or `@last`.
         */
        get: operations["executions_show"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Cancel a run */
        post: operations["executions_cancel"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/document": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The document that a run is pinned to
         * @description Without the secrets that were written into it; with the inputs that the run was submitted with.
         */
        get: operations["executions_document"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/event-page": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Some events of a run */
        get: operations["pages_event_page"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The events of a run */
        get: operations["history_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Why a step or component ran, waits or was skipped */
        get: operations["history_explain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/fanin": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How far the fanned-out loops of a run are */
        get: operations["history_fanin"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/graph": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A picture of what a run runs */
        get: operations["history_graph"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/header": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A run as the list has it */
        get: operations["executions_header"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/lineage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Which columns a column is made of */
        get: operations["pages_lineage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/lines": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Some of what the tools of a run have said */
        get: operations["pages_lines"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the tools of a run have said */
        get: operations["history_logs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/marks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What is worth stopping at on a time slider */
        get: operations["pages_marks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/moment": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A run right after one of its events */
        get: operations["pages_moment"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/net": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The graph of what a run runs */
        get: operations["pages_net"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/plan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The lowered form of what a run runs */
        get: operations["history_plan"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/ports": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The ports of a job that gave rows out */
        get: operations["pages_ports"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make the first rows of a port again
         * @description Runs what these rows depend on, with the document and the inputs of the run; nothing is written.
         */
        post: operations["pages_preview"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Decide a run again and compare */
        post: operations["pages_replay"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Go on with a run that failed, was interrupted or crashed
         * @description `seq` is the last event before: what comes after it belongs to the resumed run. With `failed` also a job that completed is resumed, to run its failed iterations again.
         */
        post: operations["executions_resume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/rows": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Rows of a port that were kept */
        get: operations["pages_rows"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/timeline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** When things ran, waited and were tried again */
        get: operations["pages_timeline"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/values": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Variables, inputs, results and outcomes */
        get: operations["pages_values"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/waiting": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What of a run waits for a worker, and why */
        get: operations["history_waiting"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/{run}/why": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Why a step or component ran, waits or was skipped, with the events and lines that say so */
        get: operations["pages_why"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/executions/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Start many runs of one document
         * @description Up to 1,000 runs, registered together. None is started if the document is wrong, or the inputs of one of them. A key that was used for another request is found afterwards, when the others have started.
         */
        post: operations["executions_submit_many"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The documents in the folder of the project */
        get: operations["workbench_files"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/files/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A document of the project */
        get: operations["workbench_file"];
        /**
         * Save a document of the project
         * @description Refused when the file has changed since it was read (`digest`).
         */
        put: operations["workbench_save"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/graph": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A picture of a document */
        post: operations["documents_graph"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/hooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the hooks */
        get: operations["triggers_hooks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/hooks/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A hook */
        get: operations["triggers_hook"];
        /**
         * Make or change a hook
         * @description Without `secret` the one that is there stays; `null` takes it away.
         */
        put: operations["triggers_put_hook"];
        post?: never;
        /** Delete a hook */
        delete: operations["triggers_drop_hook"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/leases": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What waits and what is held */
        get: operations["fleet_leases"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/lineage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Which columns of a job its columns are made of */
        post: operations["pages_document_lineage"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/losses": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Workers that were lost, and what became of their leases
         * @description The newest first. A server keeps the newest 1,000, for all that share its database.
         */
        get: operations["workbench_losses"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/plan": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** The lowered form of a document */
        post: operations["documents_plan"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/pools": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Pools of workers */
        get: operations["fleet_pools"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/prune": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Delete old runs, and results that nothing refers to any more */
        post: operations["admin_prune"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/reference": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Tools and components */
        get: operations["workbench_reference"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/reference/{kind}/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A tool or a component */
        get: operations["workbench_reference_page"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/results/{store}/{checksum}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The bytes of a result
         * @description `store` and `checksum` as they stand in a reference (`$ref`).
         */
        get: operations["history_get"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/schedules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the schedules */
        get: operations["triggers_schedules"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/schedules/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** A schedule */
        get: operations["triggers_schedule"];
        /** Make or change a schedule */
        put: operations["triggers_put_schedule"];
        post?: never;
        /** Delete a schedule */
        delete: operations["triggers_drop_schedule"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/schedules/{name}/backfill": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run slots of the past
         * @description Queues them; a server runs them in order, as the schedule's rule for overlapping runs says.
         */
        post: operations["triggers_backfill"];
        /** Let slots of backfills wait no more */
        delete: operations["triggers_stop"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/schedules/{name}/fire": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run what a schedule runs, now
         * @description Also while it is paused. The run is none of its slots: it neither counts as one nor waits for one.
         */
        post: operations["workbench_fire"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/schedules/{name}/slots": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What became of the slots of a schedule
         * @description The newest `limit` of the period, the oldest first. Slots that passed before the schedule was made are unknown.
         */
        get: operations["triggers_slots"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/schema/{kind}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The JSON Schema of a kind of document */
        get: operations["workbench_schema"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/servers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The servers that are alive */
        get: operations["fleet_servers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who is signed in */
        get: operations["workbench_session"];
        put?: never;
        /**
         * Sign in with a token
         * @description Sets a cookie that stands for the token, until that is revoked or expires, or the browser is closed.
         */
        post: operations["workbench_sign_in"];
        /** Sign out */
        delete: operations["workbench_sign_out"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/state": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What documents keep between runs */
        get: operations["state_kept"];
        /** Say what a document is to keep */
        put: operations["state_keep"];
        post?: never;
        /** Let a document keep something no more */
        delete: operations["state_drop"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/stats": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The latest durations of each document */
        get: operations["pages_stats"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One stream for all that a client watches
         * @description Server-sent events: `entry`, `line`, `status`, `run`. Come back with `Last-Event-ID` to miss nothing.
         */
        get: operations["history_stream"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/times": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** The next times of a cron expression */
        post: operations["workbench_times"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the tokens */
        get: operations["admin_listing"];
        put?: never;
        /**
         * Make a token
         * @description Its secret is in the answer, and nowhere else: only a hash of it is kept.
         */
        post: operations["admin_add"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/tokens/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revoke a token */
        delete: operations["admin_revoke"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/validate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Every problem of a document */
        post: operations["documents_validate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/version": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Which server this is */
        get: operations["server_version"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/versions/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** All versions of a document, newest first */
        get: operations["documents_versions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who works */
        get: operations["fleet_workers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workers/{worker}/drain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Let a worker finish what it has, take nothing more, and stop */
        post: operations["workbench_drain"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The process is alive */
        get: operations["server_health"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/hooks/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Start a run from outside
         * @description Signed with the hook's secret (`X-Penstock-Signature` or `X-Hub-Signature-256`); a hook without one needs a token with the scope `run`. The body and some headers are the run's `workload.event`.
         */
        post: operations["triggers_hooked"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Figures */
        get: operations["server_metrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/ready": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Runs can be submitted */
        get: operations["server_ready"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** AddToken */
        AddToken: {
            /** Expires In S */
            expires_in_s?: number | null;
            /** Name */
            name: string;
            /**
             * Scope
             * @enum {string}
             */
            scope: "read" | "run" | "admin";
        };
        /** AlertList */
        AlertList: {
            /** Alerts */
            alerts: components["schemas"]["AlertOut"][];
        } & {
            [key: string]: unknown;
        };
        /** AlertOut */
        AlertOut: {
            /** Auth */
            auth: string | null;
            /** Created At */
            created_at: string;
            /** Delivered */
            delivered: number;
            /** Document */
            document: string | null;
            /**
             * Failed
             * @description so many were given up after too many attempts
             */
            failed: number;
            /** Is On */
            is_on: boolean;
            /** Label */
            label: string | null;
            /** Last Error */
            last_error: string | null;
            /** Mail From */
            mail_from: string | null;
            /** Mail To */
            mail_to: string | null;
            /** Name */
            name: string;
            /** On */
            on: string[];
            /** Pending */
            pending: number;
            /** Schedule */
            schedule: string | null;
            /** Smtp Host */
            smtp_host: string | null;
            /** Smtp Port */
            smtp_port: number | null;
            /** Smtp Security */
            smtp_security: string;
            /** Url */
            url: string | null;
        } & {
            [key: string]: unknown;
        };
        /** AlertTested */
        AlertTested: {
            /** Name */
            name: string;
            /** Status */
            status: string;
        } & {
            [key: string]: unknown;
        };
        /** AskedOut */
        AskedOut: {
            /** Execution Id */
            execution_id: string;
            /**
             * Seq
             * @description the last event before this was asked
             */
            seq: number;
            /**
             * Status
             * @description as it was when this was asked; the run's owner acts on it before long
             */
            status: string;
        } & {
            [key: string]: unknown;
        };
        /**
         * BackfillIn
         * @description Times without an offset are in the zone of the schedule; both ends are included, and `to` as a date means its whole day.
         */
        BackfillIn: {
            /**
             * At Once
             * @description so many of its runs may be going at a time, if the schedule lets its runs overlap
             * @default 1
             */
            at_once: number;
            /**
             * Dry Run
             * @default false
             */
            dry_run: boolean;
            /**
             * From
             * @description a date or a time in the form of ISO 8601
             */
            from: string;
            /**
             * Name
             * @description the same name again runs no slot twice; by default the period
             */
            name?: string | null;
            /** To */
            to: string;
            /**
             * Which
             * @default all
             * @enum {string}
             */
            which: "all" | "missing" | "failed";
        };
        /** BackfillOut */
        BackfillOut: {
            /**
             * Backfill
             * @description its name
             */
            backfill: string;
            /** Dry Run */
            dry_run: boolean;
            /** Queued */
            queued: number;
            /** Schedule */
            schedule: string;
            /** Since */
            since: string;
            /** Slots */
            slots: components["schemas"]["PlannedOut"][];
            /** Until */
            until: string;
        } & {
            [key: string]: unknown;
        };
        /** BarOut */
        BarOut: {
            /** Attempt */
            attempt?: number | null;
            /**
             * Count
             * @description how many were merged, because they are narrower than a pixel
             */
            count: number;
            /** Failed */
            failed: number;
            /**
             * Is Critical
             * @default false
             */
            is_critical: boolean;
            /**
             * Kind
             * @enum {string}
             */
            kind: "run" | "attempt" | "wait" | "lease";
            /** Label */
            label: string;
            /** Scope */
            scope: string | null;
            /**
             * Seq
             * @description the event that began it
             */
            seq: number | null;
            /** Since */
            since: number;
            /** Status */
            status: string;
            /**
             * Until
             * @description null while it goes on
             */
            until: number | null;
            /** Worker */
            worker?: string | null;
        } & {
            [key: string]: unknown;
        };
        /** CancelIn */
        CancelIn: {
            /**
             * Reason
             * @default cancelled on request
             */
            reason: string;
        };
        /** ColumnOut */
        ColumnOut: {
            /** Name */
            name: string;
            /** Type */
            type: string;
        } & {
            [key: string]: unknown;
        };
        /** CompareOut */
        CompareOut: {
            /** Edges */
            edges: components["schemas"]["EdgeDifferenceOut"][];
            /** @description the first decision that differs; null when none does */
            first: components["schemas"]["FirstDifferenceOut"] | null;
            /** Inputs */
            inputs: components["schemas"]["ValueDifferenceOut"][];
            /**
             * Is Complete
             * @description false: the runs are so long that only their beginnings were compared
             */
            is_complete: boolean;
            left: components["schemas"]["SideOut"];
            /** Left Text */
            left_text: string;
            /** Nodes */
            nodes: components["schemas"]["NodeDifferenceOut"][];
            right: components["schemas"]["SideOut"];
            /** Right Text */
            right_text: string;
            /** Same Document */
            same_document: boolean;
        } & {
            [key: string]: unknown;
        };
        /** DeliveryList */
        DeliveryList: {
            /** Deliveries */
            deliveries: components["schemas"]["DeliveryOut"][];
        } & {
            [key: string]: unknown;
        };
        /** DeliveryOut */
        DeliveryOut: {
            /** About */
            about: string;
            /** At */
            at: string;
            /** Attempts */
            attempts: number;
            /** Error */
            error: string | null;
            /** Event */
            event: {
                [key: string]: unknown;
            };
            /**
             * State
             * @description `pending`, `delivered` or `failed`
             */
            state: string;
        } & {
            [key: string]: unknown;
        };
        /** DocumentAsked */
        DocumentAsked: {
            /** Document */
            document: components["schemas"]["DocumentText"] | components["schemas"]["DocumentPath"];
        };
        /**
         * DocumentPath
         * @description A document of the catalog: its newest version, or the one that is asked for.
         */
        DocumentPath: {
            /** Path */
            path: string;
            /** Version */
            version?: number | null;
        };
        /**
         * DocumentText
         * @description A document as text. `file` is the name it goes by; relative paths in it are relative to its folder, on the worker. No file
         *     of the server is read: joblets and documents that it calls are in `sources`, or in the catalog.
         */
        DocumentText: {
            /**
             * File
             * @default document.yaml
             */
            file: string;
            /**
             * Sources
             * @description what it takes in or calls: file -> text
             */
            sources?: {
                [key: string]: string;
            };
            /** Text */
            text: string;
        };
        /** DrainedOut */
        DrainedOut: {
            /** Is Draining */
            is_draining: boolean;
            /** Worker */
            worker: string;
        } & {
            [key: string]: unknown;
        };
        /** DroppedOut */
        DroppedOut: {
            /** Document */
            document: string;
            /** Dropped */
            dropped: number;
        } & {
            [key: string]: unknown;
        };
        /** EdgeDifferenceOut */
        EdgeDifferenceOut: {
            /** Differs */
            differs: boolean;
            /** Edge */
            edge: string;
            /** Label */
            label: string;
            left: components["schemas"]["EdgeStateOut"] | null;
            right: components["schemas"]["EdgeStateOut"] | null;
        } & {
            [key: string]: unknown;
        };
        /** EdgeStateOut */
        EdgeStateOut: {
            /** Fired */
            fired: number;
            /**
             * Rate
             * @description rows a second
             */
            rate: number | null;
            /** Rows */
            rows: number | null;
            /**
             * State
             * @enum {string}
             */
            state: "fired" | "dead" | "unsettled";
        } & {
            [key: string]: unknown;
        };
        /** ErrorBody */
        ErrorBody: {
            /** Code */
            code: string;
            /** Hint */
            hint: string | null;
            /** Message */
            message: string;
            /** Problems */
            problems?: components["schemas"]["ProblemOut"][] | null;
        } & {
            [key: string]: unknown;
        };
        /** ErrorOut */
        ErrorOut: {
            error: components["schemas"]["ErrorBody"];
        } & {
            [key: string]: unknown;
        };
        /** EventPageOut */
        EventPageOut: {
            /**
             * Events
             * @description envelopes, as `penstock events --json` prints them
             */
            events: {
                [key: string]: unknown;
            }[];
            /** Last Seq */
            last_seq: number;
            /**
             * Next
             * @description go on after this event; null at the end
             */
            next: number | null;
            /**
             * Scanned
             * @description how many events were looked at; a filter may need several requests
             */
            scanned: number;
        } & {
            [key: string]: unknown;
        };
        /**
         * ExaminedOut
         * @description A document as it is being written: its problems, and its graph if it has one.
         */
        ExaminedOut: {
            form: components["schemas"]["FormOut"] | null;
            graph: components["schemas"]["GraphOut"] | null;
            /** Problems */
            problems: components["schemas"]["ProblemOut"][];
            /**
             * Status
             * @enum {string}
             */
            status: "valid" | "invalid";
        } & {
            [key: string]: unknown;
        };
        /** ExplainedOut */
        ExplainedOut: {
            /** Execution Id */
            execution_id: string;
        } & {
            [key: string]: unknown;
        };
        /** FaninOut */
        FaninOut: {
            /** Execution Id */
            execution_id: string;
            /**
             * Fanin
             * @description step run -> how far its fanned-out loop is
             */
            fanin: {
                [key: string]: unknown;
            };
        } & {
            [key: string]: unknown;
        };
        /** FanOut */
        FanOut: {
            /** Failed */
            failed: number;
            /**
             * Failures
             * @description the first elements that failed
             */
            failures: number[];
            /** Mode */
            mode: string;
            /** Ok */
            ok: number;
            /** Open */
            open: number;
            /**
             * Total
             * @description null while it is not known
             */
            total: number | null;
        } & {
            [key: string]: unknown;
        };
        /** FieldOut */
        FieldOut: {
            /** Default */
            default: unknown;
            /** Is Secret */
            is_secret: boolean;
            /** Name */
            name: string;
            /**
             * Type
             * @enum {string}
             */
            type: "string" | "integer" | "number" | "boolean" | "array" | "object" | "any";
        } & {
            [key: string]: unknown;
        };
        /** FiledList */
        FiledList: {
            /** Documents */
            documents: components["schemas"]["FiledOut"][];
        } & {
            [key: string]: unknown;
        };
        /** FiledOut */
        FiledOut: {
            /** Created At */
            created_at: string;
            /** Created By */
            created_by: string;
            /** Digest */
            digest: string;
            /** Kind */
            kind: string;
            /** Path */
            path: string;
            /** Sources */
            sources?: {
                [key: string]: string;
            } | null;
            /** Text */
            text?: string | null;
            /** Version */
            version: number;
        } & {
            [key: string]: unknown;
        };
        /** FileList */
        FileList: {
            /** Files */
            files: components["schemas"]["FileOut"][];
            /** Root */
            root: string;
        } & {
            [key: string]: unknown;
        };
        /** FileOut */
        FileOut: {
            /**
             * File
             * @description as a run names it
             */
            file: string;
            /** Kind */
            kind: string;
            /** Modified At */
            modified_at: number;
            /** Name */
            name: string;
            /**
             * Path
             * @description from the folder of the project
             */
            path: string;
            /** Size */
            size: number;
        } & {
            [key: string]: unknown;
        };
        /** FileTextOut */
        FileTextOut: {
            /**
             * Digest
             * @description give it back when saving, so that no change of somebody else is overwritten
             */
            digest: string;
            /**
             * File
             * @description as a run names it
             */
            file: string;
            /** Kind */
            kind: string;
            /** Modified At */
            modified_at: number;
            /** Name */
            name: string;
            /**
             * Path
             * @description from the folder of the project
             */
            path: string;
            /** Size */
            size: number;
            /** Text */
            text: string;
        } & {
            [key: string]: unknown;
        };
        /** FiredOut */
        FiredOut: {
            /** Execution Id */
            execution_id: string;
        } & {
            [key: string]: unknown;
        };
        /** FirstDifferenceOut */
        FirstDifferenceOut: {
            /** Left */
            left: string | null;
            /** Left Seq */
            left_seq: number | null;
            /** Node */
            node: string | null;
            /** Right */
            right: string | null;
            /** Right Seq */
            right_seq: number | null;
        } & {
            [key: string]: unknown;
        };
        /**
         * FormOut
         * @description What a run of a document can be given.
         */
        FormOut: {
            /** Contexts */
            contexts: string[];
            /** Fields */
            fields: components["schemas"]["FieldOut"][];
            /**
             * Is Open
             * @description other names may be given as well
             */
            is_open: boolean;
            /** Kind */
            kind: string;
            /** Name */
            name: string;
        } & {
            [key: string]: unknown;
        };
        /** FrameStateOut */
        FrameStateOut: {
            /** Ended At */
            ended_at: number | null;
            /** Error */
            error: string | null;
            /** Started At */
            started_at: number | null;
            /**
             * Status
             * @enum {string}
             */
            status: "waiting" | "running" | "ok" | "failed" | "skipped" | "not_run";
        } & {
            [key: string]: unknown;
        };
        /** GraphEdgeOut */
        GraphEdgeOut: {
            /** File */
            file: string;
            /** Guard */
            guard?: string | null;
            /** Id */
            id: string;
            /** Is Failure */
            is_failure: boolean;
            /**
             * Kind
             * @enum {string}
             */
            kind: "data" | "control" | "arc";
            /** Label */
            label: string;
            /** Line */
            line: number | null;
            /**
             * On
             * @description `data`, `ok`, `error`, `if`, … of a job; `arc` of a playbook
             */
            on: string;
            /** Port */
            port?: string | null;
            /** Source */
            source: string;
            /** Target */
            target: string;
            /** To Port */
            to_port?: string | null;
        } & {
            [key: string]: unknown;
        };
        /** GraphFrameOut */
        GraphFrameOut: {
            /** Id */
            id: string;
            /**
             * Kind
             * @enum {string}
             */
            kind: "subjob" | "joblet" | "body";
            /**
             * Opener
             * @description the node that opens it; null for a sub-job
             */
            opener: string | null;
            /** Parent */
            parent: string | null;
            /** Title */
            title: string;
        } & {
            [key: string]: unknown;
        };
        /** GraphIn */
        GraphIn: {
            /** Document */
            document: components["schemas"]["DocumentText"] | components["schemas"]["DocumentPath"];
            /**
             * Format
             * @default mermaid
             * @enum {string}
             */
            format: "mermaid" | "dot" | "svg" | "json";
        };
        /** GraphNodeOut */
        GraphNodeOut: {
            /** Badges */
            badges: string[];
            /**
             * Calls
             * @description the document that it runs, when that is written down as a constant
             */
            calls: string | null;
            /** End Line */
            end_line: number | null;
            /** File */
            file: string;
            /**
             * Frame
             * @description the frame it lies in
             */
            frame: string | null;
            /**
             * Id
             * @description the step or component, as the document names it; unique in its execution
             */
            id: string;
            /**
             * Kind
             * @enum {string}
             */
            kind: "step" | "component" | "joblet" | "iterator";
            /** Line */
            line: number | null;
            /**
             * Loop
             * @description of a node that runs many times: how, in a few words
             */
            loop: string | null;
            /**
             * Opens
             * @description the frame it opens: the inside of a joblet call, the body of an iterator
             */
            opens: string | null;
            /** Tasks */
            tasks: components["schemas"]["GraphTaskOut"][];
            /**
             * Title
             * @description its name within its frame
             */
            title: string;
            /**
             * Type
             * @description the type of a component, or the kinds of a step's tools
             */
            type: string;
        } & {
            [key: string]: unknown;
        };
        /** GraphOut */
        GraphOut: {
            /**
             * Digest
             * @description the same digest has the same graph
             */
            digest: string;
            /** Edges */
            edges: components["schemas"]["GraphEdgeOut"][];
            /** Entry */
            entry: string | null;
            /** Frames */
            frames: components["schemas"]["GraphFrameOut"][];
            /** Kind */
            kind: string;
            /** Name */
            name: string;
            /** Nodes */
            nodes: components["schemas"]["GraphNodeOut"][];
        } & {
            [key: string]: unknown;
        };
        /** GraphTaskOut */
        GraphTaskOut: {
            /** Kind */
            kind: string;
            /** Line */
            line?: number | null;
            /** Name */
            name: string;
        } & {
            [key: string]: unknown;
        };
        /** HealthOut */
        HealthOut: {
            /** Server */
            server: string;
            /**
             * Status
             * @constant
             */
            status: "ok";
        } & {
            [key: string]: unknown;
        };
        /** HookedOut */
        HookedOut: {
            /** Execution Id */
            execution_id: string;
        } & {
            [key: string]: unknown;
        };
        /** HookList */
        HookList: {
            /** Hooks */
            hooks: components["schemas"]["HookOut"][];
        } & {
            [key: string]: unknown;
        };
        /** HookOut */
        HookOut: {
            /** Context */
            context: string | null;
            /** Is On */
            is_on: boolean;
            /** Is Signed */
            is_signed: boolean;
            /** Name */
            name: string;
            /** Path */
            path: string;
            /** Payload */
            payload: {
                [key: string]: unknown;
            };
            /** Version */
            version: number | null;
        } & {
            [key: string]: unknown;
        };
        /**
         * InsideOut
         * @description An execution inside the run.
         */
        InsideOut: {
            /** Ended At */
            ended_at: number | null;
            /** Kind */
            kind: string;
            /** Name */
            name: string;
            /**
             * Node
             * @description the step or component that runs it
             */
            node: string | null;
            /**
             * Parent
             * @description the scope of the execution that this node belongs to
             */
            parent: string;
            /** Scope */
            scope: string;
            /** Started At */
            started_at: number;
            /** Status */
            status: string;
        } & {
            [key: string]: unknown;
        };
        /** KeptList */
        KeptList: {
            /** State */
            state: components["schemas"]["KeptOut"][];
        } & {
            [key: string]: unknown;
        };
        /** KeptOut */
        KeptOut: {
            /** Changed At */
            changed_at: string;
            /** Document */
            document: string;
            /** Key */
            key: string;
            /**
             * Kind
             * @description `value`, or `watermark` of a reader
             */
            kind: string;
            /**
             * Lost Run
             * @description a run whose value was not taken, because another run had changed it meanwhile
             */
            lost_run: string | null;
            /** Lost Value */
            lost_value: unknown;
            /**
             * Run
             * @description the run that set it; null when a person did
             */
            run: string | null;
            /** Value */
            value: unknown;
        } & {
            [key: string]: unknown;
        };
        /** LaneOut */
        LaneOut: {
            /** Bars */
            bars: components["schemas"]["BarOut"][];
            /** Id */
            id: string;
            /**
             * Kind
             * @enum {string}
             */
            kind: "node" | "subjob" | "worker";
            /** Title */
            title: string;
        } & {
            [key: string]: unknown;
        };
        /** LeaseList */
        LeaseList: {
            /** Leases */
            leases: components["schemas"]["LeaseOut"][];
        } & {
            [key: string]: unknown;
        };
        /** LeaseOut */
        LeaseOut: {
            /** Age S */
            age_s: number;
            /** Attempt */
            attempt: number;
            /** Execution Id */
            execution_id: string;
            /** Key */
            key: string;
            /** Left S */
            left_s: number | null;
            /**
             * Needs
             * @description what a worker must be able to do
             */
            needs: string[];
            /** Pool */
            pool: string;
            /**
             * Worker
             * @description null while it waits
             */
            worker: string | null;
        } & {
            [key: string]: unknown;
        };
        /**
         * LineageOut
         * @description Each entry says that one column is made of another.
         */
        LineageOut: {
            /**
             * Columns
             * @description `COMPONENT.PORT` -> its columns
             */
            columns: {
                [key: string]: components["schemas"]["ColumnOut"][];
            };
            /** Steps */
            steps: components["schemas"]["LineageStepOut"][];
        } & {
            [key: string]: unknown;
        };
        /** LineageStepOut */
        LineageStepOut: {
            /** Column */
            column: string;
            /** Component */
            component: string;
            /** Into Column */
            into_column: string;
            /** Into Component */
            into_component: string;
            /** Into Port */
            into_port: string | null;
            /** Port */
            port: string | null;
        } & {
            [key: string]: unknown;
        };
        /** LineOut */
        LineOut: {
            /** Line */
            line: string;
            /** Node */
            node: string | null;
            /** Number */
            number: number;
            /** Scope */
            scope: string;
            /** Task Run Id */
            task_run_id: string | null;
            /** Ts */
            ts: number;
        } & {
            [key: string]: unknown;
        };
        /** LinePageOut */
        LinePageOut: {
            /** Lines */
            lines: components["schemas"]["LineOut"][];
            /** Next */
            next: number | null;
        } & {
            [key: string]: unknown;
        };
        /** LossList */
        LossList: {
            /** Losses */
            losses: components["schemas"]["LostLeaseOut"][];
        } & {
            [key: string]: unknown;
        };
        /** LostLeaseOut */
        LostLeaseOut: {
            /** At */
            at: number;
            /** Execution Id */
            execution_id: string;
            /**
             * Outcome
             * @description what became of it: taken by another worker, waiting, ended with its run
             */
            outcome: string;
            /** Scope */
            scope: string;
            /** Taken By */
            taken_by: string | null;
            /** Worker */
            worker: string | null;
        } & {
            [key: string]: unknown;
        };
        /** MarkOut */
        MarkOut: {
            /**
             * Kind
             * @enum {string}
             */
            kind: "start" | "resume" | "failure" | "retry" | "interrupted" | "cancel" | "lost" | "end";
            /** Node */
            node: string | null;
            /** Seq */
            seq: number;
            /** Text */
            text: string;
            /** Ts */
            ts: number;
        } & {
            [key: string]: unknown;
        };
        /**
         * MarksOut
         * @description What is worth stopping at on the time slider.
         */
        MarksOut: {
            /**
             * First Error
             * @description the event of the first failure
             */
            first_error: number | null;
            /** First Ts */
            first_ts: number;
            /**
             * Folded To
             * @description what is marked lies up to this event; see `MomentOut`
             */
            folded_to: number;
            /** Last Seq */
            last_seq: number;
            /** Last Ts */
            last_ts: number;
            /** Marks */
            marks: components["schemas"]["MarkOut"][];
            /**
             * Types
             * @description type of event -> how many
             */
            types: {
                [key: string]: number;
            };
        } & {
            [key: string]: unknown;
        };
        /** MomentOut */
        MomentOut: {
            /** Counts */
            counts: {
                [key: string]: number;
            };
            /** Digest */
            digest: string;
            /** Edges */
            edges: {
                [key: string]: components["schemas"]["EdgeStateOut"];
            };
            /** Ended At */
            ended_at: number | null;
            /** Error */
            error: string | null;
            /** Execution Id */
            execution_id: string;
            /** Executions */
            executions: components["schemas"]["InsideOut"][];
            /** Exit Code */
            exit_code: number | null;
            /** File */
            file: string;
            /**
             * Folded To
             * @description a long run that nobody has looked at is read piece by piece: so far to this event. While it is smaller than the event that was asked for, this is the state after it, and asking again gives more
             */
            folded_to: number;
            /** Frames */
            frames: {
                [key: string]: components["schemas"]["FrameStateOut"];
            };
            /**
             * Is Live
             * @description this is the latest moment of a run that is going
             */
            is_live: boolean;
            /** Kind */
            kind: string;
            /** Label */
            label: string | null;
            /**
             * Last Seq
             * @description of the run as it is now
             */
            last_seq: number;
            /** Name */
            name: string;
            /** Nodes */
            nodes: {
                [key: string]: components["schemas"]["NodeStateOut"];
            };
            /**
             * Now
             * @description the server's clock
             */
            now: number;
            /**
             * Scope
             * @description the execution that nodes, edges and frames are of; empty for the run itself
             */
            scope: string;
            /**
             * Seq
             * @description the event that this is the state after
             */
            seq: number;
            /** Started At */
            started_at: number;
            /**
             * Status
             * @description `running`, `completed`, `failed`, `cancelled`, `interrupted`, or `crashed`
             */
            status: string;
            /**
             * Status Reason
             * @description why it crashed, waits, was interrupted or cancelled
             */
            status_reason: string | null;
            /**
             * Ts
             * @description the time of that event, in seconds since the epoch
             */
            ts: number;
        } & {
            [key: string]: unknown;
        };
        /** NewTokenOut */
        NewTokenOut: {
            /** Created At */
            created_at: string;
            /** Expires At */
            expires_at: string | null;
            /** Id */
            id: string;
            /** Last Used At */
            last_used_at: string | null;
            /** Name */
            name: string;
            /** Scope */
            scope: string;
            /**
             * Secret
             * @description shown once, here; only a hash of it is kept
             */
            secret: string;
        } & {
            [key: string]: unknown;
        };
        /** NodeDifferenceOut */
        NodeDifferenceOut: {
            /**
             * Differs
             * @description `status`, `runs`, `attempts`, `rows`, `error`, `time`
             */
            differs: string[];
            left: components["schemas"]["NodeStateOut"] | null;
            /** Node */
            node: string;
            right: components["schemas"]["NodeStateOut"] | null;
        } & {
            [key: string]: unknown;
        };
        /** NodeStateOut */
        NodeStateOut: {
            /**
             * Attempt
             * @description of the task that runs, or ran last; 0 when there was none
             */
            attempt: number;
            /**
             * Children
             * @description the scopes of executions that run inside it, the latest first
             */
            children: string[];
            /**
             * Ended
             * @description status -> how many of its runs ended so
             */
            ended: {
                [key: string]: number;
            };
            /** Ended At */
            ended_at: number | null;
            /** Error */
            error: string | null;
            fan: components["schemas"]["FanOut"] | null;
            /**
             * Ms
             * @description of all its runs that ended
             */
            ms: number;
            /**
             * Reason
             * @description why it was skipped, or what it waits for
             */
            reason: string | null;
            /**
             * Retry At
             * @description when the next attempt begins
             */
            retry_at: number | null;
            /** Rows In */
            rows_in: {
                [key: string]: number;
            };
            /** Rows Out */
            rows_out: {
                [key: string]: number;
            };
            /**
             * Rows So Far
             * @description of a component that is running, as far as that is known
             */
            rows_so_far: {
                [key: string]: number;
            };
            /**
             * Run
             * @description the scope of its latest run
             */
            run: string | null;
            /**
             * Runs
             * @description how often it ran, or runs
             */
            runs: number;
            /**
             * Started At
             * @description of its latest run; seconds since the epoch
             */
            started_at: number | null;
            /**
             * Status
             * @description `not_run`: the execution ended before its turn came
             * @enum {string}
             */
            status: "waiting" | "running" | "retrying" | "ok" | "failed" | "skipped" | "not_run";
            /**
             * Task
             * @description the task that runs, or ran last
             */
            task: string | null;
            /** Worker */
            worker: string | null;
        } & {
            [key: string]: unknown;
        };
        /** OneOfManyIn */
        OneOfManyIn: {
            /**
             * Idempotency Key
             * @description the same key again is the same run
             */
            idempotency_key?: string | null;
            /** Label */
            label?: string | null;
            /**
             * Payload
             * @description goes over the defaults of the workload or context
             */
            payload?: {
                [key: string]: unknown;
            };
        };
        /** ParameterOut */
        ParameterOut: {
            /** Default */
            default: unknown;
            /** Description */
            description: string;
            /** Name */
            name: string;
            /** Required */
            required: boolean;
            /** Type */
            type: string;
        } & {
            [key: string]: unknown;
        };
        /** PinnedOut */
        PinnedOut: {
            /** File */
            file: string;
            /** Inputs */
            inputs?: {
                [key: string]: unknown;
            } | null;
            /** Sources */
            sources?: {
                [key: string]: string;
            } | null;
            /** Text */
            text: string;
        } & {
            [key: string]: unknown;
        };
        /** PlanIn */
        PlanIn: {
            /** Document */
            document: components["schemas"]["DocumentText"] | components["schemas"]["DocumentPath"];
            /**
             * Format
             * @description `text`: of a job, for people
             * @default json
             * @enum {string}
             */
            format: "json" | "text";
        };
        /** PlannedOut */
        PlannedOut: {
            /** Is Queued */
            is_queued: boolean;
            /** Run */
            run: string | null;
            /** Slot */
            slot: string;
            /**
             * Status
             * @description of its last run, else what became of it; null when nothing did
             */
            status: string | null;
            /**
             * Why
             * @description why it is left out
             */
            why: string | null;
        } & {
            [key: string]: unknown;
        };
        /** PoolList */
        PoolList: {
            /** Pools */
            pools: components["schemas"]["PoolOut"][];
        } & {
            [key: string]: unknown;
        };
        /** PoolOut */
        PoolOut: {
            /** Held */
            held: number;
            /** Name */
            name: string;
            /** Slots */
            slots: number;
            /** Waiting */
            waiting: number;
            /** Workers */
            workers: number;
        } & {
            [key: string]: unknown;
        };
        /** PortOut */
        PortOut: {
            /** Component */
            component: string;
            /** Is Kept */
            is_kept: boolean;
            /** Is Reject */
            is_reject: boolean;
            /** Port */
            port: string;
            /** Rows */
            rows: number | null;
        } & {
            [key: string]: unknown;
        };
        /** PortsOut */
        PortsOut: {
            /** Ports */
            ports: components["schemas"]["PortOut"][];
        } & {
            [key: string]: unknown;
        };
        /** PreviewIn */
        PreviewIn: {
            /** Component */
            component: string;
            /** Port */
            port?: string | null;
            /**
             * Rows
             * @default 50
             */
            rows: number;
        };
        /**
         * ProblemOut
         * @description Of a document: with `code`, `severity`, `file`, `line`, `column`. Of a request: with `where`.
         */
        ProblemOut: {
            /** Calls */
            calls?: string | null;
            /** Code */
            code?: string | null;
            /** Column */
            column?: number | null;
            /** End Column */
            end_column?: number | null;
            /** File */
            file?: string | null;
            /** Hint */
            hint?: string | null;
            /** Line */
            line?: number | null;
            /** Message */
            message: string;
            /** Severity */
            severity?: string | null;
            /** Where */
            where?: string | null;
        } & {
            [key: string]: unknown;
        };
        /** PruneIn */
        PruneIn: {
            /**
             * Dry Run
             * @default false
             */
            dry_run: boolean;
            /**
             * Keep Failed
             * @default false
             */
            keep_failed: boolean;
            /** Older Than S */
            older_than_s: number;
        };
        /** PruneOut */
        PruneOut: {
            /**
             * Bytes
             * @description of these results; only a dry run counts them
             */
            bytes: number | null;
            /** Dry Run */
            dry_run: boolean;
            /** Results */
            results: number;
            /** Runs */
            runs: number;
        } & {
            [key: string]: unknown;
        };
        /** PutAlert */
        PutAlert: {
            /**
             * Auth
             * @description an entry of the servers' keychain: of the mail server, or the secret that signs the webhook
             */
            auth?: string | null;
            /**
             * Document
             * @description only of this document: its path in the catalog, or its file
             */
            document?: string | null;
            /**
             * Is On
             * @default true
             */
            is_on: boolean;
            /**
             * Label
             * @description only of runs with this label
             */
            label?: string | null;
            /** Mail From */
            mail_from?: string | null;
            /**
             * Mail To
             * @description who gets a mail; or `url` for a webhook
             */
            mail_to?: string | null;
            /** On */
            on: ("failed" | "late" | "missed")[];
            /**
             * Schedule
             * @description only of this schedule
             */
            schedule?: string | null;
            /** Smtp Host */
            smtp_host?: string | null;
            /** Smtp Port */
            smtp_port?: number | null;
            /**
             * Smtp Security
             * @default starttls
             * @enum {string}
             */
            smtp_security: "none" | "starttls" | "tls";
            /**
             * Url
             * @description a webhook, or `keychain:NAME` for one that is kept in the keychain
             */
            url?: string | null;
        };
        /**
         * PutDocument
         * @description A document by itself.
         */
        PutDocument: {
            /**
             * Sources
             * @description the joblets that a job takes in: path from the document's folder -> text
             */
            sources?: {
                [key: string]: string;
            };
            /** Text */
            text: string;
        };
        /** PutHook */
        PutHook: {
            /**
             * Context
             * @description of a job: a group of its context
             */
            context?: string | null;
            /**
             * Is On
             * @default true
             */
            is_on: boolean;
            /** Path */
            path: string;
            /** Payload */
            payload?: {
                [key: string]: unknown;
            };
            /**
             * Secret
             * @description requests must be signed with it; without one they need a token with the scope `run`
             */
            secret?: string | null;
            /** Version */
            version?: number | null;
        };
        /** PutKept */
        PutKept: {
            /** Document */
            document: string;
            /** Key */
            key: string;
            /**
             * Kind
             * @default value
             * @enum {string}
             */
            kind: "value" | "watermark";
            /** Value */
            value?: unknown;
        };
        /**
         * PutProject
         * @description A folder with documents and all they need.
         */
        PutProject: {
            /**
             * Archive
             * @description its files: a tar, gzipped, in base64
             */
            archive: string;
        };
        /** PutSchedule */
        PutSchedule: {
            /** Context */
            context?: string | null;
            /** Cron */
            cron: string;
            /**
             * Deadline S
             * @description a run that has not ended so long after its slot is late
             */
            deadline_s?: number | null;
            /**
             * Is On
             * @default true
             */
            is_on: boolean;
            /**
             * Missed
             * @default last
             * @enum {string}
             */
            missed: "all" | "last" | "none";
            /**
             * Overlap
             * @description what becomes of a slot while an earlier run of the schedule is still going
             * @default allow
             * @enum {string}
             */
            overlap: "allow" | "skip" | "queue" | "cancel";
            /** Path */
            path: string;
            /** Payload */
            payload?: {
                [key: string]: unknown;
            };
            /** Version */
            version?: number | null;
            /**
             * Zone
             * @default UTC
             */
            zone: string;
        };
        /** ReadyOut */
        ReadyOut: {
            /** Partitions */
            partitions: number;
            /** Server */
            server: string;
            /**
             * Status
             * @constant
             */
            status: "ready";
        } & {
            [key: string]: unknown;
        };
        /** ReasonOut */
        ReasonOut: {
            /** File */
            file: string | null;
            /** Line */
            line: number | null;
            /** Node */
            node: string | null;
            /**
             * Scope
             * @description the execution that `node` belongs to; empty for the run itself
             */
            scope?: string | null;
            /**
             * Seq
             * @description the event that says so
             */
            seq: number | null;
            /** Text */
            text: string;
        } & {
            [key: string]: unknown;
        };
        /** ReasonsOut */
        ReasonsOut: {
            /** Lines */
            lines: components["schemas"]["ReasonOut"][];
            /** Title */
            title: string;
        } & {
            [key: string]: unknown;
        };
        /** ReferenceList */
        ReferenceList: {
            /** Entries */
            entries: components["schemas"]["ReferenceOut"][];
        } & {
            [key: string]: unknown;
        };
        /** ReferenceOut */
        ReferenceOut: {
            /** Error */
            error?: string | null;
            /** Family */
            family: string;
            /**
             * Kind
             * @enum {string}
             */
            kind: "tool" | "component";
            /** Name */
            name: string;
            /** Summary */
            summary: string;
        } & {
            [key: string]: unknown;
        };
        /** ReferencePageOut */
        ReferencePageOut: {
            /** Error */
            error?: string | null;
            /** Example */
            example: string;
            /** Family */
            family: string;
            /** Inputs */
            inputs: components["schemas"]["ReferencePortOut"][];
            /**
             * Kind
             * @enum {string}
             */
            kind: "tool" | "component";
            /** Name */
            name: string;
            /**
             * Output
             * @description what the result of a tool looks like; empty for a component
             */
            output: string;
            /** Outputs */
            outputs: components["schemas"]["ReferencePortOut"][];
            /** Params */
            params: components["schemas"]["ParameterOut"][];
            /** Summary */
            summary: string;
            /** Text */
            text: string;
        } & {
            [key: string]: unknown;
        };
        /** ReferencePortOut */
        ReferencePortOut: {
            /** Description */
            description: string;
            /** Many */
            many: boolean;
            /** Name */
            name: string;
            /** Reject */
            reject: boolean;
            /** Required */
            required: boolean;
        } & {
            [key: string]: unknown;
        };
        /** ReplayOut */
        ReplayOut: {
            /** Difference */
            difference: string | null;
            /** Events */
            events: number;
            /** Execution Id */
            execution_id: string;
            /**
             * Status
             * @enum {string}
             */
            status: "same" | "different";
        } & {
            [key: string]: unknown;
        };
        /** ResumeIn */
        ResumeIn: {
            /**
             * Failed
             * @description of a job that completed: run its failed iterations again
             * @default false
             */
            failed: boolean;
        };
        /** RowsOut */
        RowsOut: {
            /** Columns */
            columns: components["schemas"]["ColumnOut"][];
            /** Component */
            component: string;
            /** Note */
            note: string | null;
            /** Port */
            port: string;
            /** Rows */
            rows: unknown[][];
            /**
             * Source
             * @enum {string}
             */
            source: "kept" | "preview";
            /**
             * Total
             * @description null when only the first rows were made
             */
            total: number | null;
        } & {
            [key: string]: unknown;
        };
        /** RunList */
        RunList: {
            /**
             * Next
             * @description give it as `after` to get the next page; null on the last one
             */
            next: string | null;
            /** Runs */
            runs: components["schemas"]["RunOut"][];
        } & {
            [key: string]: unknown;
        };
        /**
         * RunOut
         * @description A run as the list has it.
         */
        RunOut: {
            /** Crashed */
            crashed: boolean;
            /** Duration Ms */
            duration_ms: number | null;
            /** Ended At */
            ended_at: string | null;
            /** Events */
            events: number;
            /** Execution Id */
            execution_id: string;
            /**
             * Failed Iterations
             * @description of a job that completed: iterations that failed and were gone on from
             */
            failed_iterations: number;
            /** File */
            file: string;
            /** Kind */
            kind: string;
            /** Label */
            label: string | null;
            /** Name */
            name: string;
            /**
             * Reason
             * @description why it failed, was interrupted, crashed or waits, where that is known
             */
            reason?: string | null;
            /** Started At */
            started_at: string;
            /** Status */
            status: string;
            /** Trace Id */
            trace_id: string | null;
        } & {
            [key: string]: unknown;
        };
        /** SaveFile */
        SaveFile: {
            /**
             * Digest
             * @description of the text that was changed; null for a new file
             */
            digest?: string | null;
            /** Text */
            text: string;
        };
        /** ScheduleList */
        ScheduleList: {
            /** Schedules */
            schedules: components["schemas"]["ScheduleOut"][];
        } & {
            [key: string]: unknown;
        };
        /** ScheduleOut */
        ScheduleOut: {
            /** Context */
            context: string | null;
            /** Cron */
            cron: string;
            /** Deadline S */
            deadline_s: number | null;
            /**
             * Fired To
             * @description all slots up to this time have been fired or let go
             */
            fired_to: string | null;
            /** Is On */
            is_on: boolean;
            /** Last Error */
            last_error: string | null;
            /** Last Run */
            last_run: string | null;
            /** Last Slot */
            last_slot: string | null;
            /**
             * Late
             * @description its slots that are open and past their deadline
             */
            late: string[];
            /** Missed */
            missed: string;
            /** Name */
            name: string;
            /** Next At */
            next_at: string | null;
            /** Overlap */
            overlap: string;
            /** Path */
            path: string;
            /** Payload */
            payload: {
                [key: string]: unknown;
            };
            /**
             * Running
             * @description its runs that are going
             */
            running: string[];
            /** Version */
            version: number | null;
            /**
             * Waiting
             * @description so many slots wait until they may run
             */
            waiting: number;
            /** Zone */
            zone: string;
        } & {
            [key: string]: unknown;
        };
        /** ServerList */
        ServerList: {
            /** Servers */
            servers: components["schemas"]["ServerOut"][];
        } & {
            [key: string]: unknown;
        };
        /** ServerOut */
        ServerOut: {
            /** Id */
            id: string;
            /** Name */
            name: string;
            /** Partitions */
            partitions: number;
            /** Since */
            since: string;
        } & {
            [key: string]: unknown;
        };
        /** SessionOut */
        SessionOut: {
            /**
             * Is Local
             * @description the page of a folder on this machine: its files can be edited
             */
            is_local: boolean;
            /**
             * Is Open
             * @description the server asks nobody for a token
             */
            is_open: boolean;
            /** Name */
            name: string;
            /**
             * Root
             * @description that folder
             */
            root: string | null;
            /**
             * Scope
             * @enum {string}
             */
            scope: "read" | "run" | "admin";
            /** Server */
            server: string;
            /** Version */
            version: string;
        } & {
            [key: string]: unknown;
        };
        /**
         * ShownOut
         * @description What `penstock show --json` prints; a job has `components`, `subjobs` and `globals` instead of `steps` and `ctx`.
         */
        ShownOut: {
            /** Counts */
            counts: {
                [key: string]: unknown;
            };
            /** Crashed */
            crashed: boolean;
            /** Duration Ms */
            duration_ms: number;
            /** Error */
            error: unknown;
            /** Execution Id */
            execution_id: string;
            /** Exit Code */
            exit_code: number | null;
            /** File */
            file: string;
            /** Kind */
            kind: string;
            /** Label */
            label: string | null;
            /** Name */
            name: string;
            /** Status */
            status: string;
        } & {
            [key: string]: unknown;
        };
        /** SideOut */
        SideOut: {
            /** Digest */
            digest: string;
            /** Duration Ms */
            duration_ms: number | null;
            /** Ended At */
            ended_at: number | null;
            /** Events */
            events: number;
            /** Execution Id */
            execution_id: string;
            /** File */
            file: string;
            /** Label */
            label: string | null;
            /** Name */
            name: string;
            /** Started At */
            started_at: number;
            /** Status */
            status: string;
        } & {
            [key: string]: unknown;
        };
        /** SignIn */
        SignIn: {
            /** Token */
            token: string;
        };
        /** SlotList */
        SlotList: {
            /** Slots */
            slots: components["schemas"]["SlotOut"][];
        } & {
            [key: string]: unknown;
        };
        /** SlotOut */
        SlotOut: {
            /**
             * Attempt
             * @description how many runs of this slot were asked for
             */
            attempt: number;
            /**
             * Backfill
             * @description the backfill that asked for the last of them
             */
            backfill: string | null;
            /** Is Late */
            is_late: boolean;
            /** Note */
            note: string | null;
            /** Run */
            run: string | null;
            /** Slot */
            slot: string;
            /**
             * State
             * @description `due`, `queued`, `started`, `skipped`, `refused` or `missed`
             */
            state: string;
            /**
             * Status
             * @description the status of its run, else the state
             */
            status: string;
        } & {
            [key: string]: unknown;
        };
        /** StatList */
        StatList: {
            /** Documents */
            documents: components["schemas"]["StatOut"][];
        } & {
            [key: string]: unknown;
        };
        /**
         * StatOut
         * @description The latest runs of a document, the oldest first.
         */
        StatOut: {
            /** Durations Ms */
            durations_ms: (number | null)[];
            /** Kind */
            kind: string;
            /** Name */
            name: string;
            /** Runs */
            runs: string[];
            /** Statuses */
            statuses: string[];
        } & {
            [key: string]: unknown;
        };
        /** StoppedOut */
        StoppedOut: {
            /** Schedule */
            schedule: string;
            /**
             * Stopped
             * @description so many slots wait no more; what is running goes on
             */
            stopped: number;
        } & {
            [key: string]: unknown;
        };
        /** SubmitIn */
        SubmitIn: {
            /**
             * Context
             * @description of a job: a group of its context
             */
            context?: string | null;
            /** Document */
            document: components["schemas"]["DocumentText"] | components["schemas"]["DocumentPath"];
            /**
             * Idempotency Key
             * @description the same key again is the same run; the header `Idempotency-Key` does the same
             */
            idempotency_key?: string | null;
            /**
             * Keep
             * @description of a job: ports whose rows are kept, `COMPONENT[.PORT]`
             */
            keep?: string[];
            /** Label */
            label?: string | null;
            /**
             * Payload
             * @description goes over the defaults of the workload or context
             */
            payload?: {
                [key: string]: unknown;
            };
        };
        /** SubmitManyIn */
        SubmitManyIn: {
            /**
             * Context
             * @description of a job: a group of its context
             */
            context?: string | null;
            /** Document */
            document: components["schemas"]["DocumentText"] | components["schemas"]["DocumentPath"];
            /**
             * Keep
             * @description of a job: ports whose rows are kept, `COMPONENT[.PORT]`
             */
            keep?: string[];
            /**
             * Runs
             * @description one run for each
             */
            runs: components["schemas"]["OneOfManyIn"][];
        };
        /** SubmitManyOut */
        SubmitManyOut: {
            /**
             * Runs
             * @description in the order in which they were asked for
             */
            runs: components["schemas"]["SubmitOut"][];
        } & {
            [key: string]: unknown;
        };
        /** SubmitOut */
        SubmitOut: {
            /**
             * Created
             * @description false when this idempotency key was used before: then this is the run made then
             */
            created: boolean;
            /** Execution Id */
            execution_id: string;
        } & {
            [key: string]: unknown;
        };
        /** TimelineOut */
        TimelineOut: {
            /**
             * Critical
             * @description the nodes on it, in order
             */
            critical: string[];
            /**
             * Critical Ms
             * @description the length of the critical path
             */
            critical_ms: number | null;
            /**
             * Folded To
             * @description see `MomentOut`
             */
            folded_to: number;
            /** Lanes */
            lanes: components["schemas"]["LaneOut"][];
            /**
             * Seq
             * @description the event up to which this is shown
             */
            seq: number;
            /** Since */
            since: number;
            /** Until */
            until: number;
        } & {
            [key: string]: unknown;
        };
        /** TimesIn */
        TimesIn: {
            /**
             * Count
             * @default 10
             */
            count: number;
            /** Cron */
            cron: string;
            /**
             * Zone
             * @default UTC
             */
            zone: string;
        };
        /** TimesOut */
        TimesOut: {
            /**
             * Times
             * @description ISO 8601, with the offset of the zone
             */
            times: string[];
        } & {
            [key: string]: unknown;
        };
        /** TokenList */
        TokenList: {
            /** Tokens */
            tokens: components["schemas"]["TokenOut"][];
        } & {
            [key: string]: unknown;
        };
        /** TokenOut */
        TokenOut: {
            /** Created At */
            created_at: string;
            /** Expires At */
            expires_at: string | null;
            /** Id */
            id: string;
            /** Last Used At */
            last_used_at: string | null;
            /** Name */
            name: string;
            /** Scope */
            scope: string;
        } & {
            [key: string]: unknown;
        };
        /** ValidateIn */
        ValidateIn: {
            /**
             * Context
             * @description of a job: a group of its context
             */
            context?: string | null;
            /** Document */
            document: components["schemas"]["DocumentText"] | components["schemas"]["DocumentPath"];
            /**
             * Payload
             * @description what a run would be given
             */
            payload?: {
                [key: string]: unknown;
            };
            /**
             * Strict
             * @description warnings are errors
             * @default false
             */
            strict: boolean;
        };
        /** ValidateOut */
        ValidateOut: {
            /** Errors */
            errors: number;
            /** Problems */
            problems: components["schemas"]["ProblemOut"][];
            /**
             * Status
             * @enum {string}
             */
            status: "valid" | "invalid";
        } & {
            [key: string]: unknown;
        };
        /** ValueDifferenceOut */
        ValueDifferenceOut: {
            /** Left */
            left: unknown;
            /** Path */
            path: string;
            /** Right */
            right: unknown;
        } & {
            [key: string]: unknown;
        };
        /** ValueOut */
        ValueOut: {
            /** Id */
            id: string;
            /**
             * Is Whole
             * @description false: `value` is the beginning; ask for more with `path`, `offset`, `limit`
             */
            is_whole: boolean;
            /**
             * Size
             * @description bytes as JSON
             */
            size: number;
            /** Title */
            title: string;
            /**
             * Total
             * @description how many entries the list or mapping has in all
             */
            total: number | null;
            /** Value */
            value: unknown;
        } & {
            [key: string]: unknown;
        };
        /** ValuesOut */
        ValuesOut: {
            /** Node */
            node: string | null;
            /**
             * Run
             * @description the scope of the run of the node
             */
            run: string | null;
            /**
             * Runs
             * @description the runs of the node that can be asked for, the latest first
             */
            runs: string[];
            /** Values */
            values: components["schemas"]["ValueOut"][];
        } & {
            [key: string]: unknown;
        };
        /** VersionOut */
        VersionOut: {
            /** Api */
            api: number;
            /** Server */
            server: string;
            /**
             * Stores
             * @description the kinds of results that can be read here; new ones are of the first
             */
            stores: string[];
            /** Version */
            version: string;
        } & {
            [key: string]: unknown;
        };
        /** WaitList */
        WaitList: {
            /** Execution Id */
            execution_id: string;
            /** Waiting */
            waiting: components["schemas"]["WaitOut"][];
        } & {
            [key: string]: unknown;
        };
        /** WaitOut */
        WaitOut: {
            /**
             * Age S
             * @description how long the oldest has waited
             */
            age_s: number;
            /**
             * Is Range
             * @description parts of a loop wait; others may be under way
             */
            is_range: boolean;
            /**
             * Is Stuck
             * @description no worker there is can take it
             */
            is_stuck: boolean;
            /**
             * Needs
             * @description what a worker must be able to do
             */
            needs: string[];
            /**
             * Offers
             * @description how many leases wait; more than one for ranges of a loop
             */
            offers: number;
            /** Pool */
            pool: string;
            /**
             * Scope
             * @description the step run, the sub-job, or the loop whose ranges wait
             */
            scope: string;
            /** Why */
            why: string[];
        } & {
            [key: string]: unknown;
        };
        /** WhyOut */
        WhyOut: {
            /** Because */
            because: components["schemas"]["ReasonsOut"][];
            /** Execution Id */
            execution_id: string;
            headline: components["schemas"]["ReasonOut"];
            /** Node */
            node: string;
            /** Status */
            status: string;
        } & {
            [key: string]: unknown;
        };
        /** WorkerList */
        WorkerList: {
            /** Workers */
            workers: components["schemas"]["WorkerOut"][];
        } & {
            [key: string]: unknown;
        };
        /** WorkerOut */
        WorkerOut: {
            /**
             * Age S
             * @description since its last sign of life
             */
            age_s: number;
            /** Can */
            can: string[];
            /** Held */
            held: number;
            /** Id */
            id: string;
            /** Is Alive */
            is_alive: boolean;
            /** Is Draining */
            is_draining: boolean;
            /**
             * Is Inside
             * @description it is part of the server's own process, and stops with it: it cannot be drained
             */
            is_inside: boolean;
            /** Name */
            name: string;
            /** Pool */
            pool: string;
            /** Slots */
            slots: number;
            /** Version */
            version: string;
        } & {
            [key: string]: unknown;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type AddToken = components['schemas']['AddToken'];
export type AlertList = components['schemas']['AlertList'];
export type AlertOut = components['schemas']['AlertOut'];
export type AlertTested = components['schemas']['AlertTested'];
export type AskedOut = components['schemas']['AskedOut'];
export type BackfillIn = components['schemas']['BackfillIn'];
export type BackfillOut = components['schemas']['BackfillOut'];
export type BarOut = components['schemas']['BarOut'];
export type CancelIn = components['schemas']['CancelIn'];
export type ColumnOut = components['schemas']['ColumnOut'];
export type CompareOut = components['schemas']['CompareOut'];
export type DeliveryList = components['schemas']['DeliveryList'];
export type DeliveryOut = components['schemas']['DeliveryOut'];
export type DocumentAsked = components['schemas']['DocumentAsked'];
export type DocumentPath = components['schemas']['DocumentPath'];
export type DocumentText = components['schemas']['DocumentText'];
export type DrainedOut = components['schemas']['DrainedOut'];
export type DroppedOut = components['schemas']['DroppedOut'];
export type EdgeDifferenceOut = components['schemas']['EdgeDifferenceOut'];
export type EdgeStateOut = components['schemas']['EdgeStateOut'];
export type ErrorBody = components['schemas']['ErrorBody'];
export type ErrorOut = components['schemas']['ErrorOut'];
export type EventPageOut = components['schemas']['EventPageOut'];
export type ExaminedOut = components['schemas']['ExaminedOut'];
export type ExplainedOut = components['schemas']['ExplainedOut'];
export type FaninOut = components['schemas']['FaninOut'];
export type FanOut = components['schemas']['FanOut'];
export type FieldOut = components['schemas']['FieldOut'];
export type FiledList = components['schemas']['FiledList'];
export type FiledOut = components['schemas']['FiledOut'];
export type FileList = components['schemas']['FileList'];
export type FileOut = components['schemas']['FileOut'];
export type FileTextOut = components['schemas']['FileTextOut'];
export type FiredOut = components['schemas']['FiredOut'];
export type FirstDifferenceOut = components['schemas']['FirstDifferenceOut'];
export type FormOut = components['schemas']['FormOut'];
export type FrameStateOut = components['schemas']['FrameStateOut'];
export type GraphEdgeOut = components['schemas']['GraphEdgeOut'];
export type GraphFrameOut = components['schemas']['GraphFrameOut'];
export type GraphIn = components['schemas']['GraphIn'];
export type GraphNodeOut = components['schemas']['GraphNodeOut'];
export type GraphOut = components['schemas']['GraphOut'];
export type GraphTaskOut = components['schemas']['GraphTaskOut'];
export type HealthOut = components['schemas']['HealthOut'];
export type HookedOut = components['schemas']['HookedOut'];
export type HookList = components['schemas']['HookList'];
export type HookOut = components['schemas']['HookOut'];
export type InsideOut = components['schemas']['InsideOut'];
export type KeptList = components['schemas']['KeptList'];
export type KeptOut = components['schemas']['KeptOut'];
export type LaneOut = components['schemas']['LaneOut'];
export type LeaseList = components['schemas']['LeaseList'];
export type LeaseOut = components['schemas']['LeaseOut'];
export type LineageOut = components['schemas']['LineageOut'];
export type LineageStepOut = components['schemas']['LineageStepOut'];
export type LineOut = components['schemas']['LineOut'];
export type LinePageOut = components['schemas']['LinePageOut'];
export type LossList = components['schemas']['LossList'];
export type LostLeaseOut = components['schemas']['LostLeaseOut'];
export type MarkOut = components['schemas']['MarkOut'];
export type MarksOut = components['schemas']['MarksOut'];
export type MomentOut = components['schemas']['MomentOut'];
export type NewTokenOut = components['schemas']['NewTokenOut'];
export type NodeDifferenceOut = components['schemas']['NodeDifferenceOut'];
export type NodeStateOut = components['schemas']['NodeStateOut'];
export type OneOfManyIn = components['schemas']['OneOfManyIn'];
export type ParameterOut = components['schemas']['ParameterOut'];
export type PinnedOut = components['schemas']['PinnedOut'];
export type PlanIn = components['schemas']['PlanIn'];
export type PlannedOut = components['schemas']['PlannedOut'];
export type PoolList = components['schemas']['PoolList'];
export type PoolOut = components['schemas']['PoolOut'];
export type PortOut = components['schemas']['PortOut'];
export type PortsOut = components['schemas']['PortsOut'];
export type PreviewIn = components['schemas']['PreviewIn'];
export type ProblemOut = components['schemas']['ProblemOut'];
export type PruneIn = components['schemas']['PruneIn'];
export type PruneOut = components['schemas']['PruneOut'];
export type PutAlert = components['schemas']['PutAlert'];
export type PutDocument = components['schemas']['PutDocument'];
export type PutHook = components['schemas']['PutHook'];
export type PutKept = components['schemas']['PutKept'];
export type PutProject = components['schemas']['PutProject'];
export type PutSchedule = components['schemas']['PutSchedule'];
export type ReadyOut = components['schemas']['ReadyOut'];
export type ReasonOut = components['schemas']['ReasonOut'];
export type ReasonsOut = components['schemas']['ReasonsOut'];
export type ReferenceList = components['schemas']['ReferenceList'];
export type ReferenceOut = components['schemas']['ReferenceOut'];
export type ReferencePageOut = components['schemas']['ReferencePageOut'];
export type ReferencePortOut = components['schemas']['ReferencePortOut'];
export type ReplayOut = components['schemas']['ReplayOut'];
export type ResumeIn = components['schemas']['ResumeIn'];
export type RowsOut = components['schemas']['RowsOut'];
export type RunList = components['schemas']['RunList'];
export type RunOut = components['schemas']['RunOut'];
export type SaveFile = components['schemas']['SaveFile'];
export type ScheduleList = components['schemas']['ScheduleList'];
export type ScheduleOut = components['schemas']['ScheduleOut'];
export type ServerList = components['schemas']['ServerList'];
export type ServerOut = components['schemas']['ServerOut'];
export type SessionOut = components['schemas']['SessionOut'];
export type ShownOut = components['schemas']['ShownOut'];
export type SideOut = components['schemas']['SideOut'];
export type SignIn = components['schemas']['SignIn'];
export type SlotList = components['schemas']['SlotList'];
export type SlotOut = components['schemas']['SlotOut'];
export type StatList = components['schemas']['StatList'];
export type StatOut = components['schemas']['StatOut'];
export type StoppedOut = components['schemas']['StoppedOut'];
export type SubmitIn = components['schemas']['SubmitIn'];
export type SubmitManyIn = components['schemas']['SubmitManyIn'];
export type SubmitManyOut = components['schemas']['SubmitManyOut'];
export type SubmitOut = components['schemas']['SubmitOut'];
export type TimelineOut = components['schemas']['TimelineOut'];
export type TimesIn = components['schemas']['TimesIn'];
export type TimesOut = components['schemas']['TimesOut'];
export type TokenList = components['schemas']['TokenList'];
export type TokenOut = components['schemas']['TokenOut'];
export type ValidateIn = components['schemas']['ValidateIn'];
export type ValidateOut = components['schemas']['ValidateOut'];
export type ValueDifferenceOut = components['schemas']['ValueDifferenceOut'];
export type ValueOut = components['schemas']['ValueOut'];
export type ValuesOut = components['schemas']['ValuesOut'];
export type VersionOut = components['schemas']['VersionOut'];
export type WaitList = components['schemas']['WaitList'];
export type WaitOut = components['schemas']['WaitOut'];
export type WhyOut = components['schemas']['WhyOut'];
export type WorkerList = components['schemas']['WorkerList'];
export type WorkerOut = components['schemas']['WorkerOut'];
export type $defs = Record<string, never>;
export interface operations {
    triggers_alerts: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertList"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    triggers_put_alert: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description up to 100 letters, digits, `.`, `_` and `-` */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PutAlert"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    triggers_drop_alert: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description up to 100 letters, digits, `.`, `_` and `-` */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    triggers_deliveries: {
        parameters: {
            query?: {
                limit?: number;
            };
            header?: never;
            path: {
                /** @description up to 100 letters, digits, `.`, `_` and `-` */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeliveryList"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    triggers_test_alert: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description up to 100 letters, digits, `.`, `_` and `-` */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AlertTested"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    pages_compare: {
        parameters: {
            query: {
                left: string;
                right: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CompareOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    documents_listing: {
        parameters: {
            query?: {
                limit?: number;
                prefix?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FiledList"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    documents_get: {
        parameters: {
            query?: {
                version?: number | null;
            };
            header?: never;
            path: {
                /** @description such as `sales/orders` */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FiledOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    documents_put: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description such as `sales/orders` */
                path: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PutDocument"] | components["schemas"]["PutProject"];
            };
        };
        responses: {
            /** @description it is there already */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FiledOut"];
                };
            };
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FiledOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    documents_delete: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description such as `sales/orders` */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    pages_examine: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DocumentAsked"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExaminedOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    executions_listing: {
        parameters: {
            query?: {
                /** @description the `next` of the page before */
                after?: string | null;
                kind?: ("playbook" | "job") | null;
                label?: string | null;
                limit?: number;
                /** @description the name of the playbook or job, or the label of the run */
                name?: string | null;
                /** @description a text in the name, label, id or file of the run */
                q?: string | null;
                /** @description started then or later: an ISO 8601 date or time, or such as `2h`, `3d` */
                since?: string | null;
                status?: ("running" | "completed" | "failed" | "cancelled" | "interrupted" | "crashed") | null;
                /** @description started then or earlier; as `since` */
                until?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunList"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    executions_submit: {
        parameters: {
            query?: never;
            header?: {
                /** @description the same key again is the same run */
                "idempotency-key"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SubmitIn"];
            };
        };
        responses: {
            /** @description this key was used before */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SubmitOut"];
                };
            };
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SubmitOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    executions_show: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ShownOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    executions_cancel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["CancelIn"] | null;
            };
        };
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AskedOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    executions_document: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PinnedOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    pages_event_page: {
        parameters: {
            query?: {
                after?: number;
                /** @description only the event that caused this one; nothing else is looked at */
                cause_of?: number | null;
                limit?: number;
                /** @description only events of this node or scope */
                place?: string | null;
                /** @description only events with this text in them */
                text?: string | null;
                /** @description only events of these types; may be repeated */
                type?: string[] | null;
            };
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EventPageOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    history_events: {
        parameters: {
            query?: {
                /** @description only what comes after this number */
                after?: number;
                /** @description go on until the run is over */
                follow?: boolean;
            };
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description one JSON object a line */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description too many streams */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    history_explain: {
        parameters: {
            query: {
                /** @description such as `fetch`, `fetch@2`, `fetch[5]` */
                node: string;
            };
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExplainedOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    history_fanin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FaninOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    history_graph: {
        parameters: {
            query?: {
                format?: "mermaid" | "dot" | "svg" | "json";
            };
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the picture */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": string;
                    "image/svg+xml": string;
                    "text/plain; charset=utf-8": string;
                    "text/vnd.graphviz; charset=utf-8": string;
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    executions_header: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RunOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    pages_lineage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LineageOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    pages_lines: {
        parameters: {
            query?: {
                after?: number;
                limit?: number;
                /** @description such as `fetch`, `fetch@2`, `fetch[5]`, `load` */
                node?: string | null;
                /** @description said by then; seconds since the epoch */
                until?: number | null;
            };
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LinePageOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    history_logs: {
        parameters: {
            query?: {
                /** @description only what comes after this number */
                after?: number;
                /** @description go on until the run is over */
                follow?: boolean;
            };
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description one JSON object a line */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": string;
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description too many streams */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    pages_marks: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MarksOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    pages_moment: {
        parameters: {
            query?: {
                /** @description right after this event; the latest if left out */
                at?: number | null;
                /** @description an execution inside the run, by its scope; empty for the run itself */
                scope?: string;
            };
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MomentOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    pages_net: {
        parameters: {
            query?: {
                /** @description an execution inside the run, by its scope; empty for the run itself */
                scope?: string;
            };
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GraphOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    history_plan: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    pages_ports: {
        parameters: {
            query?: {
                /** @description an execution inside the run, by its scope; empty for the run itself */
                scope?: string;
            };
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PortsOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    pages_preview: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PreviewIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RowsOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    pages_replay: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReplayOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    executions_resume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ResumeIn"] | null;
            };
        };
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AskedOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    pages_rows: {
        parameters: {
            query: {
                component: string;
                limit?: number;
                offset?: number;
                port?: string;
            };
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RowsOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    pages_timeline: {
        parameters: {
            query?: {
                /** @description right after this event; the latest if left out */
                at?: number | null;
                /** @description what is narrower than a pixel is merged */
                pixels?: number;
                /** @description an execution inside the run, by its scope; empty for the run itself */
                scope?: string;
                /** @description seconds since the epoch */
                since?: number | null;
                /** @description seconds since the epoch */
                until?: number | null;
                /** @description a lane for each worker, not for each node */
                workers?: boolean;
            };
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TimelineOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    pages_values: {
        parameters: {
            query?: {
                /** @description right after this event; the latest if left out */
                at?: number | null;
                limit?: number;
                /** @description such as `fetch`, `fetch@2`, `fetch[5]`, `load` */
                node?: string | null;
                offset?: number;
                /** @description within it: a JSON pointer */
                path?: string | null;
                /** @description an execution inside the run, by its scope; empty for the run itself */
                scope?: string;
                /** @description only this one, by its id */
                value?: string | null;
            };
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ValuesOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    history_waiting: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WaitList"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    pages_why: {
        parameters: {
            query: {
                /** @description right after this event; the latest if left out */
                at?: number | null;
                node: string;
                /** @description an execution inside the run, by its scope; empty for the run itself */
                scope?: string;
            };
            header?: never;
            path: {
                run: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WhyOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    executions_submit_many: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SubmitManyIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SubmitManyOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    workbench_files: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FileList"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    workbench_file: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description from the folder of the project */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FileTextOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    workbench_save: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description from the folder of the project */
                path: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SaveFile"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FileTextOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    documents_graph: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["GraphIn"];
            };
        };
        responses: {
            /** @description the picture */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": string;
                    "image/svg+xml": string;
                    "text/plain; charset=utf-8": string;
                    "text/vnd.graphviz; charset=utf-8": string;
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    triggers_hooks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HookList"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    triggers_hook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description up to 100 letters, digits, `.`, `_` and `-` */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HookOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    triggers_put_hook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description up to 100 letters, digits, `.`, `_` and `-` */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PutHook"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HookOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    triggers_drop_hook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description up to 100 letters, digits, `.`, `_` and `-` */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    fleet_leases: {
        parameters: {
            query?: {
                execution?: string | null;
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LeaseList"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    pages_document_lineage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DocumentAsked"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LineageOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    workbench_losses: {
        parameters: {
            query?: {
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LossList"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    documents_plan: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PlanIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    fleet_pools: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PoolList"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    admin_prune: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PruneIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PruneOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    workbench_reference: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReferenceList"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    workbench_reference_page: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                kind: "tool" | "component";
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReferencePageOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    history_get: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                checksum: string;
                store: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the bytes */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": string;
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    triggers_schedules: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleList"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    triggers_schedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description up to 100 letters, digits, `.`, `_` and `-` */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    triggers_put_schedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description up to 100 letters, digits, `.`, `_` and `-` */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PutSchedule"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ScheduleOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    triggers_drop_schedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description up to 100 letters, digits, `.`, `_` and `-` */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    triggers_backfill: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description up to 100 letters, digits, `.`, `_` and `-` */
                name: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["BackfillIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BackfillOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    triggers_stop: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description up to 100 letters, digits, `.`, `_` and `-` */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoppedOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    workbench_fire: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FiredOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    triggers_slots: {
        parameters: {
            query?: {
                limit?: number;
                /** @description a date or a time, included */
                since?: string | null;
                /** @description a date or a time, included */
                until?: string | null;
            };
            header?: never;
            path: {
                /** @description up to 100 letters, digits, `.`, `_` and `-` */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SlotList"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    workbench_schema: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                kind: "playbook" | "job" | "joblet";
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": unknown;
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    fleet_servers: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ServerList"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    workbench_session: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    workbench_sign_in: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SignIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description too many streams */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    workbench_sign_out: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    state_kept: {
        parameters: {
            query?: {
                document?: string | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeptList"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    state_keep: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PutKept"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeptOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    state_drop: {
        parameters: {
            query: {
                /** @description its file, or `catalog:/PATH` */
                document: string;
                key?: string | null;
                kind?: ("value" | "watermark") | null;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DroppedOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    pages_stats: {
        parameters: {
            query?: {
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StatList"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    history_stream: {
        parameters: {
            query?: {
                /** @description an execution, or `ID@SEQ` for what comes after; may be repeated */
                execution?: string[] | null;
                /** @description also what tools say */
                lines?: boolean;
                /** @description also changes in the list of runs */
                runs?: boolean;
                /** @description not what happens, only how far each run is: at most four messages a second */
                ticks?: boolean;
            };
            header?: {
                /** @description the id of the last message that was got */
                "last-event-id"?: string | null;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description server-sent events */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description too many streams */
            429: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    workbench_times: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TimesIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TimesOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    admin_listing: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenList"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    admin_add: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AddToken"];
            };
        };
        responses: {
            /** @description Successful Response */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewTokenOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    admin_revoke: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    documents_validate: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ValidateIn"];
            };
        };
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ValidateOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    server_version: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VersionOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    documents_versions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description such as `sales/orders` */
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FiledList"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    fleet_workers: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkerList"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    workbench_drain: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                worker: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DrainedOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    server_health: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HealthOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    triggers_hooked: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description up to 100 letters, digits, `.`, `_` and `-` */
                name: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": unknown;
            };
        };
        responses: {
            /** @description Successful Response */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HookedOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description there is no such thing */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description not now, or not twice */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the body is not called JSON */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    server_metrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description the Prometheus text format */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain; version=0.0.4; charset=utf-8": string;
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
    server_ready: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Successful Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReadyOut"];
                };
            };
            /** @description the request cannot be read */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description no token, or one that is not known */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the token may not do this, or the request comes from another site */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description the request is too large */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description it can be read, and is wrong */
            422: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
            /** @description a store cannot do its work; try again */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorOut"];
                };
            };
        };
    };
}
