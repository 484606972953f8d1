"""`hil dashboard`: says where the page is, and ends at Ctrl-C."""

import signal

import httpx


def test_it_says_where_it_is_and_ends_at_ctrl_c(project) -> None:
    process = project.start("dashboard")
    address = process.stdout.readline().strip()
    assert address.startswith("http://127.0.0.1:")
    assert httpx.get(f"{address}state.json").json()["runs"] == []
    process.send_signal(signal.SIGINT)
    ended = project.end(process)
    assert ended.code == 130
    assert "Traceback" not in ended.text
    project.assert_nothing_left()


def test_other_addresses_take_a_token(project) -> None:
    run = project.hil("dashboard", "--bind", "0.0.0.0")
    assert run.code == 2
    assert "HIL_DASHBOARD_TOKEN=" in run.stderr


def test_a_port_that_is_taken_is_told(project) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        run = project.hil("dashboard", "--port", str(taken.getsockname()[1]))
    assert run.code == 3
    assert "Another --port may be free" in run.stderr


def test_a_token_that_no_link_can_carry_is_told(project, monkeypatch) -> None:
    monkeypatch.setenv("HIL_DASHBOARD_TOKEN", "\u20ac" * 20)
    run = project.hil("dashboard")
    assert (run.code, "letters and digits do" in run.stderr) == (2, True)
