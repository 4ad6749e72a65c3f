"""The expressions of the dashboard and of the alert rules, and what a running
Prometheus makes of them."""

import dataclasses
import json
import pathlib
import re
import urllib.parse
import urllib.request

import yaml

MONITORING = pathlib.Path(__file__).resolve().parents[2] / "deploy/monitoring"
DASHBOARD = MONITORING / "grafana/dashboards/txl-server.json"
ALERTS = MONITORING / "alerts.yml"
# What Grafana fills in: at a scrape interval of 15 s its rate interval is 1m.
DASHBOARD_VARIABLES = {"$__rate_interval": "1m", "$instance": ".*"}
COMPARISON = re.compile(r"==|!=|>=|<=|>|<")


@dataclasses.dataclass
class Expression:
    origin: str  # panel's title or alert's name
    kind: str    # "panel" or "alert"
    label: str   # legend, or "" for an alert's operand
    text: str


def dashboard_expressions(path):
    found = []
    for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
        for target in panel.get("targets", []):
            text = target["expr"]
            for name, value in DASHBOARD_VARIABLES.items():
                text = text.replace(name, value)
            found.append(Expression(panel["title"], "panel",
                                    target["legendFormat"], text))
    return found


def operands(text):
    """Both sides of the comparison that stands outside of all brackets and
    quotes: where nothing is wrong the comparison itself has no result."""
    depth, quote, position = 0, "", 0
    while position < len(text):
        character = text[position]
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif depth == 0 and (match := COMPARISON.match(text, position)):
            return [text[:position].strip(), text[match.end():].strip()]
        position += 1
    return [text.strip()]


def alert_expressions(path):
    groups = yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
    return [Expression(rule["alert"], "alert", "", operand)
            for group in groups for rule in group["rules"]
            for operand in operands(rule["expr"])[:1]]


def all_expressions():
    return dashboard_expressions(DASHBOARD) + alert_expressions(ALERTS)


def ask(base, path, **parameters):
    url = f"{base}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
    with urllib.request.urlopen(url, timeout=10) as response:
        return json.load(response)["data"]


def has_data(base, expression):
    """Is there a number, other than NaN, for it now?"""
    data = ask(base, "query", query=expression.text)
    values = ([data["result"]] if data["resultType"] == "scalar" else
              [series["value"] for series in data["result"]])
    return any(value != "NaN" for _, value in values)


def legend(expression, labels):
    """As Grafana fills in {{label}}."""
    return re.sub(r"\{\{(\w+)\}\}", lambda m: labels.get(m[1], ""),
                  expression.label)


def all_curves(base, start, end):
    """[{kind, origin, text, curves: [{label, values: [[time, value]]}]}]"""
    results = []
    for e in all_expressions():
        data = ask(base, "query_range", query=e.text, start=start, end=end,
                   step=5)
        results.append({
            "kind": e.kind, "origin": e.origin, "text": e.text,
            "curves": [{"label": legend(e, series["metric"]),
                        "values": series["values"]}
                       for series in data["result"]]})
    return results
