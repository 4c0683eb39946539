"""Dashboard "Strata: KV memory": what strategies hold, save and share."""

from panels import dashboard, row, series, stat

RATE = "[$__rate_interval]"


def _overview():
    return [
        row("Now"),
        stat("Pool", "Bytes of the KV pools.", "bytes",
             "sum(strata_kv_pool_bytes{@})"),
        stat("In use", "Used or reserved share of the pool; the fullest "
             "server.", "percentunit", "max(strata_kv_cache_usage_ratio{@})",
             steps=[(0.8, "orange"), (0.95, "red")]),
        stat("Saved", "What live requests would hold more if all layers kept "
             "a cache.", "bytes", "sum(strata_kv_saved_bytes{@})"),
        stat("Saved share", "Of what live requests would hold if all layers "
             "kept a cache; the mean of the servers.", "percentunit",
             "avg(instance:strata_kv_saved:ratio{@})"),
        stat("Prefix hits", "Share of the looked-up prompt tokens that were in "
             "the prefix cache, over 30 minutes; the mean of the servers.",
             "percentunit",
             "avg(instance:strata_prefix_cache_hits:ratio_rate30m{@})"),
        stat("Demotions", "Sequences moved to their floor because memory was "
             "short, for each request that ended, over 30 minutes; the worst "
             "server.", "percentunit",
             "max(instance:strata_demotions:ratio_rate30m{@})",
             steps=[(0.05, "orange"), (0.25, "red")]),
    ]


def _pool():
    return [
        row("Pool"),
        series("KV bytes, by state", "The pool: used by live sequences, "
               "reserved until their end, cached for prompts to come (given up "
               "when needed), free.", "bytes",
               ("sum by (state) (strata_kv_cache_bytes{@})", "{{state}}"),
               stacked=True),
        series("Used KV bytes, by strategy", "What live sequences hold.",
               "bytes",
               ('sum by (kv_strategy) (strata_kv_cache_bytes{@, state="used"})',
                "{{kv_strategy}}"), stacked=True),
        series("Saved KV bytes, by strategy", "What live requests would hold "
               "more under the strategy full.", "bytes",
               ("sum by (kv_strategy) (strata_kv_saved_bytes{@})",
                "{{kv_strategy}}"), stacked=True),
        series("Running requests, by strategy", "The concurrency that the "
               "memory affords.", "none",
               ("sum by (kv_strategy) (strata_requests_running_by_strategy{@})",
                "{{kv_strategy}}"), stacked=True),
        series("KV bytes per token", "What one position of a sequence holds "
               "under each strategy.", "bytes",
               ("max by (kv_strategy) (strata_kv_bytes_per_token{@})",
                "{{kv_strategy}}")),
        series("Pages, by state", "Pages of the pool, each of one leader "
               "layer.", "none",
               ("sum by (state) (strata_kv_blocks{@})", "{{state}}"),
               stacked=True),
    ]


def _pressure():
    return [
        row("Sharing at run time"),
        series("Switches, by cause", "Changes of a sequence's strategy: asked "
               "for by a client of Admin, planned in the request, under memory "
               "pressure.", "ops",
               ("sum by (cause) "
                f"(rate(strata_strategy_switches_total{{@}}{RATE}))",
                "{{cause}}"), stacked=True),
        series("Bytes freed by switches, by cause", "KV bytes that came back "
               "at once.", "Bps",
               ("sum by (cause) "
                f"(rate(strata_strategy_switch_freed_bytes_total{{@}}{RATE}))",
                "{{cause}}"), stacked=True),
        series("Starts at the floor", "Sequences admitted under their floor "
               "because the pool was short.", "ops",
               ("sum by (instance) "
                f"(rate(strata_floor_starts_total{{@}}{RATE}))",
                "{{instance}}"), width=8),
        series("Pre-emptions", "Sequences that lost their pages to others and "
               "are computed again (--admission=optimistic).", "ops",
               ("sum by (instance) "
                f"(rate(strata_preemptions_total{{@}}{RATE}))",
                "{{instance}}"), width=8),
        series("Pre-emptions per request", "For each request that ended, over "
               "5 minutes; StrataPreemptionStorm fires above 0.5.", "none",
               ("instance:strata_preemptions:ratio_rate5m{@}", "{{instance}}"),
               width=8),
    ]


def _prefix():
    hits = f"(rate(strata_prefix_cache_hits_total{{@}}{RATE}))"
    queries = f"(rate(strata_prefix_cache_queries_total{{@}}{RATE}))"
    return [
        row("Prefix cache"),
        series("Hit rate, by strategy", "Share of the looked-up prompt tokens "
               "that were found. Strategies that agree on the layers below "
               "share what they find.", "percentunit",
               (f"sum by (kv_strategy) {hits} / sum by (kv_strategy) {queries}",
                "{{kv_strategy}}"), highest=1, width=8),
        series("Prompt tokens", "Looked up and found, a second.",
               "suffix: tok/s", (f"sum {queries}", "looked up"),
               (f"sum {hits}", "found"), width=8),
        series("Cached bytes", "What is kept for prompts to come.", "bytes",
               ('sum by (instance) (strata_kv_cache_bytes{@, state="cached"})',
                "{{instance}}"), width=8),
    ]


def kv():
    """Answers: what does sharing buy here, and is memory the limit?"""
    return dashboard(
        "strata-kv", "Strata: KV memory",
        "KV bytes by strategy and state, what is saved, switches, prefix hits.",
        [*_overview(), *_pool(), *_pressure(), *_prefix()])
