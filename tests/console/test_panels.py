"""Every panel, used as a user uses it."""

from __future__ import annotations

from tests.console.browsing import Console
from tests.console.conftest import SUBSCRIPTIONS
from tests.service.serving import Server, add_indexed_tenant


def test_overview_shows_rates_latency_and_what_stands_out(console: Console, server: Server) -> None:
    console.open("overview")
    console.says("#overview-facts", f"{SUBSCRIPTIONS:,}")
    for n in range(20):
        server.publish({"price": 2_950, "genre": f"g{n % 7}"})
    for plot in range(1, 5):
        line = f".plot:nth-child({plot}) .line"
        # Times to publish are known where something was published only: a dot, perhaps.
        mark = "M" if plot == 3 else "L"
        console.when(lambda line=line, mark=mark: mark in (console.run(PATH, line) or ""), line)  # type: ignore[misc]
    labels = [str(each.get_attribute("aria-label")) for each in console.all("#overview-plots svg")]
    assert [label.partition(",")[0] for label in labels] == [
        "Events per second", "Matches per second", "Time to publish", "Notes that wait",
    ]  # fmt: skip
    assert any(unit in labels[2] for unit in ("µs", "ms", " s,"))
    ticks = [each.text for each in console.all(".plot:first-child .tick")]
    assert ticks[0] == "0"
    assert ticks[-1] == "−5 min"
    assert "offer" in console.text("#hottest")
    assert "shop" in console.text("#deepest")
    console.click("#hottest a")
    console.says("#editor-title", "offer")


PATH = "return document.querySelector(arguments[0])?.getAttribute('d')"


def test_subscriptions_in_pages_and_searched(console: Console, server: Server) -> None:
    console.open("subscriptions")
    console.says("#subscriptions-status", f"1–50 of {SUBSCRIPTIONS:,}")
    first = console.rows("#subscriptions-table")
    assert first[0][:2] == ["offer 0\nshop 0", "price < 0 AND genre = 'g0'"]
    assert len(first) == 50
    console.click("#subscriptions-next")
    console.says("#subscriptions-status", "51–100")
    assert console.rows("#subscriptions-table")[0][0] == "offer 50\nshop 50"
    console.click("#subscriptions-previous")
    console.says("#subscriptions-status", "1–50")
    assert console.focused() == "subscriptions-next"  # "Previous" is switched off on the first page
    assert console.rows("#subscriptions-table") == first
    console.write("#subscriptions-search", "OFFER 2999")
    console.says("#subscriptions-status", "1–1")
    (row,) = console.rows("#subscriptions-table")
    matches = server.client.get("/v1/subscriptions", params={"search": "offer 2999"}).json()["subscriptions"][0][
        "matches"
    ]
    assert row == ["offer 2999\nshop 299", "price < 2999 AND genre = 'g3'", f"{matches:,}", ""]
    console.write("#subscriptions-search", "no such thing")
    console.says("#subscriptions-status", "No subscription found.")
    console.write("#subscriptions-search", "")
    console.write("#subscriptions-subscriber", "shop 7")
    console.says("#subscriptions-status", "1–10")
    console.write("#subscriptions-subscriber", "shop 7 and more")
    console.says("#subscriptions-status", "No subscription found.")


def test_hit_counts_grow_while_the_list_is_seen(console: Console, server: Server) -> None:
    server.subscribe("hits", "counted", "counted = 1")
    console.open("subscriptions")
    console.write("#subscriptions-search", "counted")
    console.when(lambda: [row[2] for row in console.rows("#subscriptions-table")] == ["0"], "no matches")
    for _ in range(3):
        server.publish({"counted": 1})
    console.when(lambda: [row[2] for row in console.rows("#subscriptions-table")] == ["3"], "three matches")


def test_add_change_pause_and_remove(console: Console, server: Server) -> None:
    path = "/v1/subscribers/ann/subscriptions/crime"
    console.open("subscriptions")
    console.click("#editor-save")
    console.says("#editor-problem", "Enter a subscriber.")
    assert console.focused() == "editor-subscriber"
    console.write("#editor-subscriber", "ann")
    console.write("#editor-name", "crime")
    console.write("#editor-expression", "price < 20 AND genre = 'crime'")
    console.says("#editor-verdict", "Valid. Asks about genre, price.")
    console.click("#editor-save")
    console.says("#editor-said", "Added.")
    assert server.client.get(path).json()["expression"] == "price < 20 AND genre = 'crime'"

    console.write("#editor-expression", "price < 30")
    console.click("#editor-more summary")
    console.write("#editor-weight", "two")
    console.click("#editor-save")
    console.says("#editor-problem", "The weight must be a number.")
    console.write("#editor-weight", "2.5")
    console.run("arguments[0].value = '2031-02-03T04:05:06'", console.the("#editor-until"))
    console.click("#editor-save")
    console.says("#editor-said", "Changed.")
    found = server.client.get(path).json()
    assert (found["expression"], found["weight"], found["valid_until"]) == ("price < 30", 2.5, "2031-02-03T04:05:06Z")

    console.write("#subscriptions-subscriber", "ann")
    console.when(lambda: "until 2031-02-03 04:05:06" in console.text("#subscriptions-rows"), "the bound in the list")
    console.click("#editor-pause")
    console.says("#editor-said", "Paused.")
    assert server.client.get(path).json()["paused"]
    console.when(lambda: "paused" in console.text("#subscriptions-rows"), "the state in the list")
    console.click("#editor-pause")
    console.says("#editor-said", "Resumed.")
    assert not server.client.get(path).json()["paused"]

    console.click("#editor-remove")
    console.click("#question-no")
    assert server.client.get(path).status_code == 200
    console.click("#editor-remove")
    console.click("#question-yes")
    console.says("#editor-said", "Removed.")
    assert server.client.get(path).status_code == 404


def test_a_name_that_is_taken_is_not_overwritten_unasked(console: Console, server: Server) -> None:
    server.subscribe("bob", "taken", "price < 1")
    console.open("subscriptions")
    for field, text in (("subscriber", "bob"), ("name", "taken"), ("expression", "price < 2")):
        console.write(f"#editor-{field}", text)
    console.click("#editor-save")
    console.says("#question-text", "bob already has a subscription taken.")
    console.click("#question-no")
    assert server.client.get("/v1/subscribers/bob/subscriptions/taken").json()["expression"] == "price < 1"


def test_changes_are_not_lost_unasked(console: Console, server: Server) -> None:
    server.subscribe("bob", "first", "price < 1")
    console.open("subscriptions/bob/first")
    console.says("#editor-title", "first")
    console.write("#editor-expression", "price < 2")
    console.click("#subscriptions-rows a")
    console.says("#question-text", "Discard what you have changed?")
    console.click("#question-no")
    assert console.the("#editor-expression").get_attribute("value") == "price < 2"
    assert console.driver.current_url.endswith("#subscriptions/bob/first")


def test_the_editor_shows_the_caret_while_typing(console: Console) -> None:
    console.open("subscriptions")
    console.write("#editor-expression", "price < 20 AND\n  name = 'ü😀' ORR x = 1")
    console.says("#editor-verdict", "line 2, column 15")
    assert console.text("#editor-verdict pre").strip() == "name = 'ü😀' ORR x = 1"
    assert console.text("#editor-verdict .caret") == "O"
    assert console.the("#editor-expression").get_attribute("aria-invalid") == "true"
    pointed = "return getComputedStyle(document.querySelector('#editor-verdict .caret'), '::after').content"
    assert console.run(pointed) == '"^"'
    console.write("#editor-expression", "price < ")
    console.says("#editor-verdict", "line 1, column 9")
    console.says("#editor-verdict", "Hint:")
    console.write("#editor-expression", "price < 7")
    console.says("#editor-verdict", "Valid.")
    assert console.the("#editor-expression").get_attribute("aria-invalid") is None


def test_the_tree_of_a_sample_and_of_a_stored_event(console: Console, server: Server) -> None:
    stored = server.publish({"genre": "poetry", "price": 9_007_199_254_740_993})["sequence"]
    console.open("subscriptions")
    console.write("#explain-event", '{"genre": "crime", "price": 15}')
    console.write("#editor-expression", "price < 20 AND NOT (genre = 'poetry' OR author = 'x')")
    console.says("#explanation", "The event does not match.")
    assert console.text("#explanation .tree").split("\n") == [
        "UNKNOWN", "AND", "TRUE", "price < 20 (price is 15)", "UNKNOWN", "NOT", "UNKNOWN", "OR",
        "FALSE", "genre = 'poetry' (genre is \"crime\")", "UNKNOWN", "author = 'x' (author is missing)",
    ]  # fmt: skip
    console.write("#explain-event", '{"genre": "crime", "price": 15, "author": "y"}')
    console.says("#explanation", "The event matches.")
    console.write("#explain-event", '{"genre": ')
    console.says("#explanation", "The event is not JSON")
    console.click("#explain-stored")
    console.write("#explain-number", str(stored))
    console.says("#explanation", 'genre is "poetry"')
    assert console.text("#explain-stored-event") == '{"genre": "poetry", "price": 9007199254740993}'
    console.write("#explain-number", "999999999")
    console.says("#explanation", "999999999")
    console.write("#explain-number", "one")
    console.says("#explanation", "The number of an event is 1, 2, 3 and so on.")


def test_publish_a_test_event_and_watch_its_notes(console: Console, server: Server) -> None:
    server.subscribe("eve", "all crime", "genre = 'crime'")
    server.subscribe("eve", "cheap", "price < 9.5")
    console.open("live/eve")
    console.says("#watch-status", "Waiting for notes.")
    console.write("#publish-event", '{"genre": "crime", "price": 9}')
    console.click("#would-match")
    console.says("#published", "Yes, some subscription would match.")
    console.click("#publish-form .main")
    console.says("#published", "2 subscriptions matched:")
    console.says("#stream", '{"genre": "crime", "price": 9}')
    assert "genre" in console.text("#asked")
    console.write("#publish-event", '{"genre": "crime", "price": 10}')
    console.click("#publish-form .main")
    console.says("#published", "1 subscription matched:")
    console.says("#watch-status", "2 notes")
    assert console.text("#stream li:first-child pre") == '{"genre": "crime", "price": 10}'
    console.write("#publish-event", "{")
    console.click("#publish-form .main")
    console.says("#publish-problem", "The event is not JSON")
    console.write("#publish-event", '{"genre": NaN}')
    console.click("#publish-form .main")
    console.says("#publish-problem", "The event is not JSON")
    # The name of a subscription leads to its explanation with this very event.
    console.click("#stream li:first-child a")
    console.says("#explanation", "The event matches.")
    assert '"price": 10' in console.text("#explain-stored-event")


def test_watch_all_events_and_stop(console: Console, server: Server) -> None:
    console.open("live")
    console.click("#watch-events")
    console.click("#watch-start")
    console.says("#watch-status", "events")
    server.publish({"seen": "by all"})
    console.says("#stream", '{"seen": "by all"}')
    console.click("#watch-stop")
    server.publish({"seen": "by nobody"})
    console.the("#watch-start")
    assert "by nobody" not in console.text("#stream")


def test_watching_nobody_is_a_plain_error(console: Console) -> None:
    console.open("live")
    console.click("#watch-start")
    console.says("#watch-problem", "Enter a subscriber.")
    console.write("#watch-subscriber", "nobody")
    console.click("#watch-start")
    console.says("#watch-problem", "nobody")
    console.the("#watch-start")


def test_queues(console: Console, server: Server) -> None:
    server.subscribe("queue", "all", "queued = 1")
    for _ in range(4):
        server.publish({"queued": 1})
    server.client.post("/v1/subscribers/queue/acknowledge", json={"sequence": 3})
    console.open("queues")
    console.write("#queues-search", "QUEUE")
    console.when(lambda: console.rows("#queues-table") == [["queue", "1", "3", "4", "1", ""]], "the queue")
    console.the("#queues-deepest-panel")
    waiting = [int(row[4].replace(",", "")) for row in console.rows("#queues-deepest-panel")]
    assert waiting == sorted(waiting, reverse=True)
    assert waiting[-1] > 0


def test_dead_letters_of_a_webhook(console: Console, server: Server) -> None:
    server.subscribe("hooked", "all", "hooked = 1")
    # Nobody listens there, so each note becomes a dead letter.
    answer = server.client.put("/v1/subscribers/hooked/webhook", json={"url": "http://127.0.0.1:9/x", "batch": 1})
    assert answer.status_code == 200
    for _ in range(3):
        server.publish({"hooked": 1})
    console.open("queues")
    console.says("#webhooks", "3 dead letters")
    console.click("#webhooks summary")
    console.says("#webhooks .letters", "no connection: connection refused")
    assert console.text("#webhooks .letters").count('{"hooked": 1}') == 3
    console.click("#webhooks .letters li:first-child .danger")
    console.says("#webhooks", "2 dead letters")
    console.click("#webhooks .letters li:first-child button:not(.danger)")
    console.says("#webhooks-said", "The dead letters will be sent again.")
    console.click("#webhooks .heading button")
    console.says("#webhooks-said", "Paused.")
    console.says("#webhooks .state", "paused")
    console.click("#webhooks details > .buttons .danger")
    console.click("#question-yes")
    console.says("#webhooks-said", "Forgotten.")
    assert server.client.get("/v1/subscribers/hooked/webhook").json()["dead_letters"] == 0
    server.client.delete("/v1/subscribers/hooked/webhook")


def test_add_change_rotate_and_remove_a_webhook(console: Console, server: Server) -> None:
    path = "/v1/subscribers/new-hook/webhook"
    server.subscribe("new-hook", "all", "hooked = 2")
    console.open("queues")
    console.click("#new-webhook")
    assert console.focused() == "webhook-subscriber"
    console.click("#webhook-save")
    console.says("#webhook-problem", "Enter a subscriber.")
    console.write("#webhook-subscriber", "nobody at all")
    console.write("#webhook-url", "http://127.0.0.1:9/x")
    console.click("#webhook-save")
    console.says("#webhook-problem", "nobody at all")
    console.write("#webhook-subscriber", "new-hook")
    console.write("#webhook-url", "http://10.0.0.1/x")
    console.click("#webhook-save")
    console.says("#webhook-problem", "private address")
    console.write("#webhook-url", "http://127.0.0.1:9/x")
    console.write("#webhook-batch", "some")
    console.click("#webhook-save")
    console.says("#webhook-problem", "The notes of one message")
    console.write("#webhook-batch", "7")
    console.click("#webhook-save")
    # The secret is shown once.
    first = str(console.the("#secret-text").get_attribute("value"))
    assert first.startswith("whsec_")
    console.click("#secret-close")
    console.says("#webhooks", "new-hook")
    assert console.driver.find_element("id", "secret-text").get_attribute("value") == ""
    found = server.client.get(path).json()
    assert (found["url"], found["batch"]) == ("http://127.0.0.1:9/x", 7)

    console.click("#new-webhook")
    console.write("#webhook-subscriber", "new-hook")
    console.write("#webhook-url", "http://127.0.0.1:9/z")
    console.click("#webhook-save")
    console.says("#webhook-problem", "already has a webhook")
    console.click("#webhook-close")

    mine = "[aria-label$='webhook of new-hook']"
    console.click(f"[aria-label^='Change']{mine}")
    console.write("#webhook-url", "http://127.0.0.1:9/y")
    console.click("#webhook-save")
    console.says("#webhooks-said", "Changed.")
    console.says("#webhooks", "http://127.0.0.1:9/y")
    assert server.client.get(path).json()["batch"] == 7

    console.click(f"[aria-label^='New secret']{mine}")
    console.write("#rotate-hours", "soon")
    console.click("#rotate-save")
    console.says("#rotate-problem", "Enter a number of hours")
    console.write("#rotate-hours", "2")
    console.click("#rotate-save")
    assert str(console.the("#secret-text").get_attribute("value")) not in ("", first)
    console.click("#secret-close")
    console.says("#webhooks", "Signed with the old secret, too, until")

    console.click(f"[aria-label^='Remove']{mine}")
    console.says("#question-text", "Remove the webhook of new-hook?")
    console.click("#question-no")
    assert server.client.get(path).status_code == 200
    console.click(f"[aria-label^='Remove']{mine}")
    console.click("#question-yes")
    console.says("#webhooks-said", "Removed.")
    console.when(lambda: console.focused() == "new-webhook", "the focus on the button that is left")
    assert server.client.get(path).status_code == 404


def test_the_slowest_subscriptions_and_the_drift_of_a_segment(console: Console, server: Server) -> None:
    headers = add_indexed_tenant(server)
    console.open("overview", tenant="indexed")
    console.says("#overview-facts", "4,700")
    assert "Memory of the process" in console.text("#overview-facts")
    figures = server.client.get("/v1/figures", headers=headers).json()
    console.when(lambda: len(console.all("#slowest li a")) == 8, "the slowest subscriptions")
    assert any(unit in console.text("#slowest") for unit in (" ns", " µs"))
    console.click("#slowest a")
    console.when(
        lambda: str(console.the("#editor-expression").get_attribute("value")).startswith("i"), "the expression"
    )
    console.follow("index")
    console.says("#index-facts", "×")
    assert f"{figures['drift']:.2f}"[:3] in console.text("#index-facts")
    segments = server.client.get("/v1/stats", headers=headers).json()["matcher"]["index_stats"]["segments"]
    assert [row[0] for row in console.rows("#segments")] == [f"{each['rows']:,}" for each in segments]
    drift = console.all("#index-plots svg")[0]
    console.when(lambda: "×" in str(drift.get_attribute("aria-label")), "the drift's values")


def test_index_memory_and_drift(console: Console, server: Server) -> None:
    console.open("index")
    console.says("#index-facts", "engine")
    stats = server.client.get("/v1/stats").json()
    facts = console.text("#index-facts")
    assert f"{stats['matcher']['conjunctions']:,}" in facts
    assert f"{stats['last_event']:,}" in facts
    titles = [each.text for each in console.all("#view-index h2")]
    assert titles == ["Index", "Drift", "Tables", "Segments"]
    memory = console.all("#index-plots svg")[1]
    console.when(lambda: "B, highest" in str(memory.get_attribute("aria-label")), "the memory's values")
    segments = stats["matcher"]["index_stats"]["segments"]
    assert len(console.rows("#segments")) == len(segments)
