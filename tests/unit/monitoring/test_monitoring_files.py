"""The files in `monitoring/`: what Prometheus and Grafana would refuse, and when alerts speak."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from queues.names import Queue

ROOT = Path(__file__).resolve().parents[3]
MONITORING = ROOT / "monitoring"
RULES = MONITORING / "alerts.yml"
CASES = Path(__file__).with_name("alerts_test.yml")


def run(*command):
    return subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def dashboard():
    return json.loads((MONITORING / "dashboard.json").read_text())


@pytest.fixture(scope="module")
def rules():
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return group["rules"]


def test_prometheus_takes_the_rules(promtool):
    done = run(promtool, "check", "rules", RULES)
    assert done.returncode == 0, done.stderr


def test_every_alert_speaks_when_it_must_and_only_then(promtool):
    done = run(promtool, "test", "rules", CASES)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_case_where_it_speaks_and_one_where_it_does_not(rules):
    tested = [
        case
        for test in yaml.safe_load(CASES.read_text())["tests"]
        for case in test["alert_rule_test"]
    ]
    names = {rule["alert"] for rule in rules}
    assert {case["alertname"] for case in tested if case["exp_alerts"]} == names
    assert {case["alertname"] for case in tested if not case["exp_alerts"]} == names


def test_every_alert_says_what_happens_and_what_to_do(rules):
    for rule in rules:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert {"summary", "description"} <= set(rule["annotations"])


def test_prometheus_takes_the_configuration_with_a_key_beside_it(promtool, tmp_path):
    for name in ("prometheus.yml", "alerts.yml"):
        shutil.copy(MONITORING / name, tmp_path)
    done = run(promtool, "check", "config", tmp_path / "prometheus.yml")
    assert done.returncode != 0
    assert "halldetect-key" in done.stdout + done.stderr
    (tmp_path / "halldetect-key").write_text("hd_key\n")
    done = run(promtool, "check", "config", tmp_path / "prometheus.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(yaml.safe_load(RULES.read_text())['groups'][0]['rules'])} rules" in done.stdout


def test_the_configuration_scrapes_what_compose_runs():
    jobs = {
        job["job_name"]: job["dns_sd_configs"][0]
        for job in yaml.safe_load((MONITORING / "prometheus.yml").read_text())["scrape_configs"]
    }
    services = yaml.safe_load(re.sub("!reset", "", (ROOT / "docker-compose.yml").read_text()))[
        "services"
    ]
    assert set(jobs["halldetect-workers"]["names"]) == {queue.value for queue in Queue}
    for name in jobs["halldetect-workers"]["names"]:
        environment = services[name]["environment"]
        assert environment["HALLDETECT_METRICS_PORT"] == str(jobs["halldetect-workers"]["port"])
        assert environment["HALLDETECT_METRICS_HOST"] == "0.0.0.0"
        assert "ports" not in services[name]  # inside the network only
    assert jobs["halldetect-api"]["names"] == ["api"]
    assert services["api"]["ports"][0].endswith(f":{jobs['halldetect-api']['port']}")


def test_the_alerts_know_the_jobs_by_their_names(rules):
    jobs = {
        job["job_name"]
        for job in yaml.safe_load((MONITORING / "prometheus.yml").read_text())["scrape_configs"]
    }
    named = set(re.findall(r'job="([^"]+)"', " ".join(rule["expr"] for rule in rules)))
    assert named == jobs


def test_the_dashboard_can_be_imported_beside_others(dashboard):
    (variable,) = dashboard["templating"]["list"]
    assert (variable["name"], variable["type"]) == ("datasource", "datasource")
    assert variable["query"] == "prometheus"
    assert "id" not in dashboard  # Grafana gives it one
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    source = {"type": "prometheus", "uid": "${datasource}"}
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            continue
        assert panel["datasource"] == source
        assert panel["title"]
        assert panel["targets"]
        letters = [target["refId"] for target in panel["targets"]]
        assert len(set(letters)) == len(letters)
        assert all(target["datasource"] == source for target in panel["targets"])


def test_no_two_panels_lie_on_each_other(dashboard):
    taken = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_prometheus_understands_every_query_of_the_dashboard(dashboard, promtool, tmp_path):
    queries = [
        target["expr"].replace("$__rate_interval", "5m")
        for panel in dashboard["panels"]
        for target in panel.get("targets", [])
    ]
    assert len(queries) > 30
    rules = [
        {"record": f"halldetect:panel:{number}", "expr": query}
        for number, query in enumerate(queries)
    ]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    done = run(promtool, "check", "rules", file)
    assert done.returncode == 0, done.stderr
