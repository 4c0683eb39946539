"""Dashboard "Strata: fleet": one line for each server, and what still fits."""

from panels import dashboard, row, series, stat, table

RATE = "[$__rate_interval]"


def _overview():
    return [
        row("Now"),
        stat("Up", "Servers that Prometheus can scrape.", "none",
             "sum(up{@})"),
        stat("Down", "Servers that Prometheus cannot scrape.", "none",
             "count(up{@} == 0) or vector(0)", steps=[(1, "red")]),
        stat("Unhealthy", "Servers whose engine is stalled or whose device is "
             "lost.", "none",
             "count(strata_engine_healthy{@} == 0) or vector(0)",
             steps=[(1, "red")]),
        stat("Versions", "Different versions that run; more than one: an "
             "update is under way, or got stuck.", "none",
             "count(count by (version) (strata_build_info{@}))",
             steps=[(2, "orange")]),
        stat("Generated", "Tokens a second of all servers, over 10 s.",
             "suffix: tok/s", "sum(strata_generation_tokens_per_second{@})"),
        stat("KV pools in use", "Used or reserved share of all pools together.",
             "percentunit",
             "sum(strata_kv_cache_usage_ratio{@} * strata_kv_pool_bytes{@}) / "
             "sum(strata_kv_pool_bytes{@})",
             steps=[(0.8, "orange"), (0.95, "red")]),
    ]


def _servers():
    per_server = "max by (job, instance)"
    return [
        row("Servers"),
        table("Servers", "The latest values of each server.", [
            ("Up", "none", "max by (job, instance) (up{@})"),
            ("What runs", "none",
             "max by (job, instance, model_name, version, backend) "
             "(strata_build_info{@})"),
            ("Age", "s",
             f"time() - {per_server} (process_start_time_seconds{{@}})"),
            ("Running", "none", f"{per_server} (strata_requests_running{{@}})"),
            ("Waiting", "none", f"{per_server} (strata_requests_waiting{{@}})"),
            ("Queue in use", "percentunit",
             f"{per_server} (strata_requests_waiting{{@}} / "
             "strata_max_queued_requests{@})"),
            ("KV in use", "percentunit",
             f"{per_server} (strata_kv_cache_usage_ratio{{@}})"),
            ("KV pool", "bytes", f"{per_server} (strata_kv_pool_bytes{{@}})"),
            ("Generated", "suffix: tok/s",
             f"{per_server} (strata_generation_tokens_per_second{{@}})"),
            ("Requests", "reqps",
             f"{per_server} (instance:strata_requests:rate5m{{@}})"),
            ("Errors", "percentunit",
             f"{per_server} (instance:strata_errors:ratio_rate5m{{@}})"),
        ], hidden=["Time", "job", "What runs"],
            names={"instance": "Server", "model_name": "Model",
                   "version": "Version", "backend": "Backend"}),
    ]


def _load():
    ttft = "strata_time_to_first_token_seconds_bucket{@}[$__rate_interval]"
    return [
        row("Load, by server"),
        series("Running", "Requests that run.", "none",
               ("sum by (instance) (strata_requests_running{@})",
                "{{instance}}"), width=8),
        series("Waiting", "Requests that wait.", "none",
               ("sum by (instance) (strata_requests_waiting{@})",
                "{{instance}}"), width=8),
        series("KV pool in use", "Used or reserved share of the pool.",
               "percentunit",
               ("max by (instance) (strata_kv_cache_usage_ratio{@})",
                "{{instance}}"), width=8, highest=1),
        series("Generated tokens", "A second.", "suffix: tok/s",
               ("sum by (instance) "
                f"(rate(strata_generation_tokens_total{{@}}{RATE}))",
                "{{instance}}"), width=8),
        series("Time to first token", "What 90 % of the requests stay below.",
               "s",
               ("histogram_quantile(0.9, "
                f"sum by (le, instance) (rate({ttft})))",
                "p90 {{instance}}"), width=8),
        series("Restarts", "Starts of the process within 30 minutes.", "none",
               ("changes(process_start_time_seconds{@}[30m])", "{{instance}}"),
               width=8),
    ]


def _capacity():
    return [
        row("Capacity"),
        series("Sequence slots in use", "Running requests for each sequence "
               "that may run at once (--max_sequences); above 1: requests of "
               "several samples.", "percentunit",
               ("max by (instance) (strata_requests_running{@} / "
                "strata_max_sequences{@})", "{{instance}}"), width=8),
        series("Queue in use", "Waiting requests for each that may wait "
               "(--max_queued_requests).", "percentunit",
               ("max by (instance) (strata_requests_waiting{@} / "
                "strata_max_queued_requests{@})", "{{instance}}"), width=8,
               highest=1),
        series("Tokens that still fit, by strategy", "Positions that free and "
               "cached pages hold if all were of one strategy: what sharing "
               "buys in concurrency.", "short",
               ('sum by (kv_strategy) (sum without (state) '
                '(strata_kv_cache_bytes{@, state=~"free|cached"}) / '
                'on (job, instance) group_right () '
                'strata_kv_bytes_per_token{@})', "{{kv_strategy}}"), width=8),
    ]


def fleet():
    """Answers: which server is in trouble, and do we need more of them?"""
    return dashboard(
        "strata-fleet", "Strata: fleet",
        "Each server's load, memory and version; what still fits.",
        [*_overview(), *_servers(), *_load(), *_capacity()])
