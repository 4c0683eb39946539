"""The parts that Strata's Grafana dashboards are made of.

A panel is a dict in Grafana's dashboard JSON model, schema 39 (Grafana 10.4 and
11), without `id` and the place in `gridPos`, which dashboard() gives.  In
expressions {@} stands for the selection of the variables job and instance;
{@, label="value"} adds to it.
"""

from collections.abc import Iterable, Sequence
from typing import Any

Panel = dict[str, Any]

SELECTION = 'job=~"$job", instance=~"$instance"'
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
GRID_COLUMNS = 24


def target(expr: str, legend: str, **more: Any) -> dict[str, Any]:
    """A query; `legend` may name labels as {{label}}."""
    return {
        "datasource": DATASOURCE,
        "editorMode": "code",
        "expr": expr.replace("{@", "{" + SELECTION),
        "legendFormat": legend,
        "range": True,
        "instant": False,
        **more,
    }


def _panel(kind: str, title: str, description: str, unit: str,
           queries: Iterable[tuple[str, str]], width: int, height: int,
           options: dict[str, Any], **defaults: Any) -> Panel:
    targets = [target(expr, legend) for expr, legend in queries]
    for i, query in enumerate(targets):
        query["refId"] = chr(ord("A") + i)
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": DATASOURCE,
        "gridPos": {"w": width, "h": height},
        "fieldConfig": {"defaults": {"unit": unit, **defaults},
                        "overrides": []},
        "options": options,
        "targets": targets,
    }


def row(title: str) -> Panel:
    """What follows stands below this title."""
    return {"type": "row", "title": title, "collapsed": False, "panels": [],
            "gridPos": {"w": GRID_COLUMNS, "h": 1}}


def series(title: str, description: str, unit: str,
           *queries: tuple[str, str], width: int = 12, stacked: bool = False,
           highest: float | None = None) -> Panel:
    """Lines over time; `stacked`: areas whose sum is meant."""
    custom = {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": 30 if stacked else 5,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
    }
    limits = {"min": 0} if highest is None else {"min": 0, "max": highest}
    options = {
        "legend": {"displayMode": "table", "placement": "bottom",
                   "showLegend": True, "calcs": ["mean", "max", "lastNotNull"]},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return _panel("timeseries", title, description, unit, queries, width, 8,
                  options, custom=custom, **limits)


def stat(title: str, description: str, unit: str, expr: str, *,
         width: int = 4, steps: Sequence[tuple[float, str]] = (),
         decimals: int | None = None) -> Panel:
    """The latest value; `steps` are colours from a value on."""
    thresholds = [{"color": "green", "value": None}]
    thresholds += [{"color": color, "value": value} for value, color in steps]
    options = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "",
                          "values": False},
        "colorMode": "value",
        "graphMode": "area",
        "textMode": "auto",
        "justifyMode": "auto",
        "orientation": "auto",
    }
    more = {} if decimals is None else {"decimals": decimals}
    return _panel("stat", title, description, unit, [(expr, title)], width, 4,
                  options, color={"mode": "thresholds"},
                  thresholds={"mode": "absolute", "steps": thresholds}, **more)


def heatmap(title: str, description: str, histogram: str) -> Panel:
    """Where the values of a histogram of seconds lie, over time."""
    expr = f"sum by (le) (increase({histogram}_bucket{{@}}[$__rate_interval]))"
    options = {
        "calculate": False,
        "yAxis": {"unit": "s", "axisPlacement": "left"},
        "rowsFrame": {"layout": "le"},
        "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64,
                  "exponent": 0.5, "scale": "exponential", "fill": "orange",
                  "reverse": False},
        "cellGap": 1,
        "filterValues": {"le": 1e-9},
        "tooltip": {"mode": "single", "yHistogram": False,
                    "showColorScale": False},
        "legend": {"show": True},
        "exemplars": {"color": "orange"},
        "showValue": "never",
    }
    panel = _panel("heatmap", title, description, "short", [(expr, "{{le}}")],
                   12, 8, options)
    panel["targets"][0]["format"] = "heatmap"
    return panel


def quantiles(title: str, description: str, histogram: str,
              levels: Sequence[float] = (0.5, 0.9, 0.99)) -> Panel:
    """Quantiles and the mean of a histogram of seconds."""
    buckets = f"sum by (le) (rate({histogram}_bucket{{@}}[$__rate_interval]))"
    queries = [(f"histogram_quantile({level}, {buckets})", percentile(level))
               for level in levels]
    return series(title, description, "s", *queries, (mean(histogram), "mean"))


def mean(histogram: str, *by: str) -> str:
    """The mean of what was observed, by labels."""
    grouped = f"sum by ({', '.join(by)})" if by else "sum"
    return (f"{grouped} (rate({histogram}_sum{{@}}[$__rate_interval])) / "
            f"{grouped} (rate({histogram}_count{{@}}[$__rate_interval]))")


def percentile(level: float) -> str:
    """0.99 is p99."""
    return f"p{level * 100:g}"


def table(title: str, description: str,
          columns: Sequence[tuple[str, str, str]], hidden: Sequence[str],
          names: dict[str, str]) -> Panel:
    """The latest values of each server; a column is (title, unit, query).

    `hidden` are labels not shown, `names` the titles of those shown.
    """
    queries = [(expr, name) for name, _, expr in columns]
    panel = _panel("table", title, description, "short", queries, GRID_COLUMNS,
                   9, {"showHeader": True, "cellHeight": "sm",
                       "footer": {"show": False}})
    renamed = dict(names)
    for query, (name, unit, _) in zip(panel["targets"], columns):
        query.update(format="table", instant=True, range=False)
        renamed[f"Value #{query['refId']}"] = name
        panel["fieldConfig"]["overrides"].append(
            {"matcher": {"id": "byName", "options": name},
             "properties": [{"id": "unit", "value": unit}]})
    panel["transformations"] = [
        {"id": "merge", "options": {}},
        {"id": "organize",
         "options": {"excludeByName": {label: True for label in hidden},
                     "renameByName": renamed, "indexByName": {}}},
    ]
    return panel


def _variables() -> list[dict[str, Any]]:
    def labels(name: str, query: str) -> dict[str, Any]:
        return {"name": name, "label": name.capitalize(), "type": "query",
                "datasource": DATASOURCE, "query": {"query": query,
                                                    "refId": name},
                "definition": query, "refresh": 2, "sort": 1, "regex": "",
                "multi": True, "includeAll": True, "allValue": ".+",
                "current": {"text": ["All"], "value": ["$__all"]},
                "hide": 0, "skipUrlSync": False, "options": []}

    return [
        {"name": "datasource", "label": "Data source", "type": "datasource",
         "query": "prometheus", "refresh": 1, "regex": "", "multi": False,
         "includeAll": False, "hide": 0, "skipUrlSync": False, "options": [],
         "current": {}},
        labels("job", "label_values(strata_build_info, job)"),
        labels("instance",
               'label_values(strata_build_info{job=~"$job"}, instance)'),
    ]


def _placed(panels: Iterable[Panel]) -> list[Panel]:
    """From left to right, a new line where the next does not fit."""
    placed = []
    x = y = line_height = 0
    for panel_id, panel in enumerate(panels, start=1):
        size = panel["gridPos"]
        if x + size["w"] > GRID_COLUMNS or panel["type"] == "row":
            x, y, line_height = 0, y + line_height, 0
        place = {"x": x, "y": y, "w": size["w"], "h": size["h"]}
        placed.append({"id": panel_id, **panel, "gridPos": place})
        x += size["w"]
        line_height = max(line_height, size["h"])
    return placed


def dashboard(uid: str, title: str, description: str,
              panels: Iterable[Panel]) -> dict[str, Any]:
    """A whole dashboard, as Grafana provisions it from a file."""
    return {
        "uid": uid,
        "title": title,
        "description": description,
        "tags": ["strata"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "timezone": "browser",
        "time": {"from": "now-1h", "to": "now"},
        "timepicker": {},
        "fiscalYearStartMonth": 0,
        "annotations": {"list": []},
        "links": [{"type": "dashboards", "tags": ["strata"], "title": "Strata",
                   "asDropdown": True, "includeVars": True, "keepTime": True,
                   "targetBlank": False, "icon": "external link", "url": "",
                   "tooltip": ""}],
        "templating": {"list": _variables()},
        "panels": _placed(panels),
    }
