"""HAProxy and names that nobody knows yet."""

import time

from deployment import expect, wait_for


def page(d):
    """What HAProxy says about itself: 200, 503, or nothing."""
    result = d.haproxy.execute(
        ["wget", "-q", "-S", "-T", "1", "-t", "1", "-O", "/dev/null",
         "http://127.0.0.1:8404/health"], check=False)
    words = result.stderr.split()
    return words[1] if words[:1] == ["HTTP/1.1"] else ""


def check_start_before_names(d):
    """HAProxy that starts while DNS loses every question listens within 20 s,
    and has its servers 10 s after their names appear, whether nobody answered
    before or said that there is no such name."""
    d.sandbox.stop(d.haproxy)
    networks = d.sandbox.networks.values()
    for network in networks:
        network.be_silent()
    d.haproxy = d.sandbox.start("haproxy")
    wait_for("HAProxy listens", lambda: page(d) == "503", seconds=20)
    for network in networks:
        network.hide_names()
        network.speak()
    # Several rounds of "no such name".
    until = time.monotonic() + 5
    wait_for("five seconds", lambda: time.monotonic() > until)
    expect(page(d) == "503", "it has a server that has no name")
    for network in networks:
        network.publish_names()
    wait_for("HAProxy is healthy", lambda: page(d) == "200", seconds=10)
    d.wait_for_proxy(len(d.servers))
    d.expect_turn(None)
