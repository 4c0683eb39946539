"""Dashboard "Strata: service": objectives, queue, tokens, latencies."""

from panels import dashboard, heatmap, mean, quantiles, row, series, stat

RATE = "[$__rate_interval]"


def _overview():
    return [
        row("Now"),
        stat("Servers up", "Servers that Prometheus can scrape.", "none",
             "sum(up{@})"),
        stat("Requests", "Requests that ended, a second, over 5 minutes.",
             "reqps", "sum(instance:strata_requests:rate5m{@})"),
        stat("Errors", "Share of the requests that ended in an error, over "
             "5 minutes; the worst server.", "percentunit",
             "max(instance:strata_errors:ratio_rate5m{@})",
             steps=[(0.001, "orange"), (0.01, "red")]),
        stat("Running", "Requests that run.", "none",
             "sum(strata_requests_running{@})"),
        stat("Waiting", "Requests that wait.", "none",
             "sum(strata_requests_waiting{@})",
             steps=[(1, "orange"), (64, "red")]),
        stat("KV pool in use", "Used or reserved share of the KV pool; the "
             "fullest server.", "percentunit",
             "max(strata_kv_cache_usage_ratio{@})",
             steps=[(0.8, "orange"), (0.95, "red")]),
    ]


def _objectives():
    budget = "on (slo) group_left () slo:strata_budget:ratio"
    return [
        row("Objectives"),
        series("Burn rate",
               "How many times faster than evenly over 30 days the error "
               "budget of an objective goes, over an hour: ttft (first token "
               "within 1 s), inter_token (next token within 100 ms), requests "
               "(neither failed nor refused by a full queue). "
               "StrataSloBurnsFast fires above 14.4.", "none",
               ('slo:strata_bad:ratio_rate1h{job=~"$job"} / ' + budget,
                "{{slo}} {{model_name}}"), width=8),
        series("Bad events", "Share of an objective's events that were bad, "
               "over an hour; the budget is 1 %, of requests 0.5 %.",
               "percentunit",
               ('slo:strata_bad:ratio_rate1h{job=~"$job"}',
                "{{slo}} {{model_name}}"), width=8),
        series("Budget left", "Share of the budget that would be left if the "
               "latest three days were all of it; below 0: overspent.",
               "percentunit",
               ('1 - slo:strata_bad:ratio_rate3d{job=~"$job"} / ' + budget,
                "{{slo}} {{model_name}}"), width=8),
    ]


def _requests():
    return [
        row("Requests"),
        series("Ended, by reason",
               "Requests that ended: stop and length as asked; abort and "
               "cancelled by the client; deadline; error by the server.",
               "reqps",
               ("sum by (finished_reason) "
                f"(rate(strata_request_finished_total{{@}}{RATE}))",
                "{{finished_reason}}"), stacked=True),
        series("Refused, by reason",
               "Calls that were refused: queue_full, never_fits (the pool or "
               "the longest context), invalid, draining (also a lost device).",
               "reqps",
               ("sum by (reason) "
                f"(rate(strata_request_rejected_total{{@}}{RATE}))",
                "{{reason}}"), stacked=True),
        series("Running and waiting",
               "Requests, and how many sequences and waiting requests the "
               "servers allow (--max_sequences, --max_queued_requests).",
               "none",
               ("sum(strata_requests_running{@})", "running"),
               ("sum(strata_requests_waiting{@})", "waiting"),
               ("sum(strata_max_sequences{@})", "most sequences"),
               ("sum(strata_max_queued_requests{@})", "most waiting")),
        quantiles("Time in the queue", "From arrival to the first step that "
                  "has rows of the request.",
                  "strata_request_queue_time_seconds"),
    ]


def _tokens():
    return [
        row("Tokens"),
        series("Tokens", "Prompt tokens (those found in the prefix cache "
               "included) and generated ones, a second.", "suffix: tok/s",
               (f"sum(rate(strata_prompt_tokens_total{{@}}{RATE}))", "prompt"),
               (f"sum(rate(strata_generation_tokens_total{{@}}{RATE}))",
                "generated")),
        series("Generated tokens, by strategy", "Of the default and the "
               "registered strategies; all others are other.", "suffix: tok/s",
               ("sum by (kv_strategy) "
                f"(rate(strata_generation_tokens_total{{@}}{RATE}))",
                "{{kv_strategy}}"), stacked=True),
        series("Length of requests", "Mean tokens of a request.", "none",
               (mean("strata_request_prompt_tokens"), "mean prompt"),
               (mean("strata_request_generation_tokens"), "mean generated"),
               (mean("strata_request_params_max_tokens"), "mean asked for")),
        series("Batch", "Mean rows of a step: prefill rows are prompt tokens, "
               "a decode row is a sequence.", "none",
               (mean("strata_iteration_tokens", "phase"), "mean {{phase}}"),
               stacked=True),
        quantiles("Step", "Duration of a step of the engine.",
                  "strata_step_duration_seconds"),
        series("Steps", "Steps a second of each server.", "ops",
               ("sum by (instance) "
                f"(rate(strata_step_duration_seconds_count{{@}}{RATE}))",
                "{{instance}}")),
    ]


def _latencies():
    panels = [row("Latencies")]
    for title, description, name in (
            ("Time to first token", "From arrival to the first token.",
             "time_to_first_token_seconds"),
            ("Inter-token latency", "Between two tokens of a sequence, "
             "pre-emptions included.", "inter_token_latency_seconds"),
            ("End to end", "From arrival to the end of a request.",
             "e2e_request_latency_seconds")):
        histogram = "strata_" + name
        panels.append(quantiles(title, description, histogram))
        panels.append(heatmap(title + ": distribution", description, histogram))
    for title, name in (("Time to first token", "time_to_first_token_seconds"),
                        ("Inter-token latency", "inter_token_latency_seconds")):
        rates = f"rate(strata_{name}_bucket{{@}}{RATE})"
        panels.append(series(
            title + ", by strategy", "What 90 % of the events stay below.", "s",
            (f"histogram_quantile(0.9, sum by (le, kv_strategy) ({rates}))",
             "p90 {{kv_strategy}}")))
    panels.append(series(
        "Phases", "Mean time of a request in the queue, from its first step to "
        "its first token, and from there to its last.", "s",
        (mean("strata_request_queue_time_seconds"), "mean queue"),
        (mean("strata_request_prefill_time_seconds"), "mean prefill"),
        (mean("strata_request_decode_time_seconds"), "mean decode"),
        stacked=True))
    panels.append(quantiles(
        "Time per output token", "Mean time of a request's tokens after the "
        "first.", "strata_request_time_per_output_token_seconds"))
    return panels


def _process():
    return [
        row("Process"),
        series("CPU", "Cores in use by each server.", "none",
               (f"rate(process_cpu_seconds_total{{@}}{RATE})", "{{instance}}"),
               width=8),
        series("Memory", "Resident memory of each server, KV pool and weights "
               "included.", "bytes",
               ("process_resident_memory_bytes{@}", "{{instance}}"), width=8),
        series("Open files", "File descriptors of each server, connections "
               "included.", "none", ("process_open_fds{@}", "{{instance}}"),
               width=8),
    ]


def service():
    """Answers: are users served well, and if not, where does the time go?"""
    return dashboard(
        "strata-service", "Strata: service",
        "Objectives, queue, tokens and latencies of Strata servers.",
        [*_overview(), *_objectives(), *_requests(), *_tokens(),
         *_latencies(), *_process()])
