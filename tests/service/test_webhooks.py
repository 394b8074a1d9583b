"""Webhooks, sent to a real receiver."""

from __future__ import annotations

import json
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.receiver import PATIENCE, Delivery, Receiver, Reply, new_certificate, receiving
from tests.service.serving import Server, in_tenant, serving

CERTIFICATE = Path(__file__).parent / "localhost.pem"
SETTINGS = """
[webhooks]
allowed_networks = ["127.0.0.0/8", "::1/128"]
timeout = 2.0
tries = 3
first_wait = 0.02
longest_wait = 0.05
failures = 2
"""


def settings_file(folder: Path, text: str = SETTINGS) -> Path:
    path = folder / "settings.toml"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("webhooks")
    trusting = settings_file(folder, f"{SETTINGS}ca_file = '{CERTIFICATE}'\n")
    with serving(folder / "served", "--config", trusting) as found:
        yield found


class Hooked:
    """A subscriber of its own with a webhook. It wants events that name it."""

    def __init__(self, server: Server, name: str, url: str, **words: Any) -> None:
        self.server = server
        self.name = name
        self.path = f"/v1/subscribers/{name}/webhook"
        server.client.put(f"/v1/subscribers/{name}/subscriptions/mine", json={"expression": f"who = '{name}'"})
        answer = server.client.put(self.path, json={"url": url, **words})
        assert answer.status_code == 200, answer.text
        self.secret = answer.json()["secret"]

    def publish(self, *numbers: int) -> None:
        lines = "".join(json.dumps({"who": self.name, "n": number}) + "\n" for number in numbers)
        answer = self.server.client.post("/v1/events", content=lines, headers={"Content-Type": "application/x-ndjson"})
        assert answer.json()["matches"] == len(numbers)

    def shown(self) -> dict[str, Any]:
        found: dict[str, Any] = self.server.client.get(self.path).json()
        return found

    def wait_until(self, **wanted: Any) -> dict[str, Any]:
        """The webhook, as soon as it has these values."""
        pause = threading.Event()
        for _ in range(PATIENCE * 50):
            found = self.shown()
            if wanted.items() <= found.items():
                return found
            pause.wait(0.02)
        raise AssertionError(f"{found} does not become {wanted}")

    def wait_until_all_is_acknowledged(self) -> None:
        pause = threading.Event()
        for _ in range(PATIENCE * 50):
            if self.server.notes(self.name) == []:
                return
            pause.wait(0.02)
        raise AssertionError("some notes are never acknowledged")

    def post(self, path: str, body: Any = None) -> Any:
        answer = self.server.client.post(f"{self.path}/{path}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def dead(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.server.client.get(f"{self.path}/dead-letters").json()["dead_letters"]
        return found


def numbers_in(deliveries: list[Delivery]) -> list[int]:
    return [sequence for each in deliveries for sequence in each.sequences]


def test_notes_come_in_order_in_batches_and_signed(server: Server) -> None:
    with receiving() as receiver:
        hooked = Hooked(server, "ordered", receiver.url("/in?x=1"), batch=40)
        hooked.publish(*range(100))
        found = receiver.wait_for_note(100)
        assert numbers_in(found) == list(range(1, 101))
        assert max(len(each.sequences) for each in found) <= 40
        for each in found:
            assert each.path == "/in?x=1"
            assert each.is_signed(hooked.secret)
            assert not each._replace(body=each.body + b" ").is_signed(hooked.secret)
        note = json.loads(found[0].body)["notifications"][0]
        assert json.loads(found[0].body)["subscriber"] == "ordered"
        assert note["event"] == {"who": "ordered", "n": 0}
        assert note["subscriptions"] == ["mine"]


def test_what_is_delivered_is_acknowledged(server: Server) -> None:
    with receiving() as receiver:
        hooked = Hooked(server, "acknowledged", receiver.url())
        hooked.publish(1, 2, 3)
        receiver.wait_for_note(3)
        hooked.wait_until_all_is_acknowledged()


def test_a_failed_message_is_repeated_as_it_was(server: Server) -> None:
    statuses = [503, 429]
    with receiving(lambda _, place: Reply(statuses[place]) if place < 2 else Reply()) as receiver:
        hooked = Hooked(server, "repeated", receiver.url())
        hooked.publish(1)
        hooked.publish(2)  # It may come in time for the first message.
        found = receiver.wait_for(lambda found: 2 in numbers_in(found[2:]))
        assert len({each.headers["webhook-id"] for each in found[:3]}) == 1
        assert len({each.body for each in found[:3]}) == 1
        assert numbers_in(found[2:]) == [1, 2]
        assert all(each.is_signed(hooked.secret) for each in found)
        assert hooked.wait_until(tries=0, reason="")["state"] == "active"


def test_a_receiver_that_says_nothing_holds_up_nobody(server: Server) -> None:
    end = threading.Event()

    def answer(delivery: Delivery, place: int) -> Reply:
        end.wait(PATIENCE)
        return Reply()

    with receiving(answer) as silent, receiving() as quick:
        try:
            slow = [Hooked(server, f"silent-{number}", silent.url()) for number in range(40)]
            for each in slow:
                each.publish(1)
            silent.wait_for(lambda found: len(found) >= 40)
            hooked = Hooked(server, "quick", quick.url(), batch=1)
            hooked.publish(*range(50))
            assert numbers_in(quick.wait_for_note(50)) == list(range(1, 51))
            assert slow[0].wait_until(tries=1)["reason"] == "no answer within 2 seconds"
        finally:
            end.set()
            for each in slow:
                server.client.delete(each.path)


def test_after_the_last_try_notes_are_dead_letters_and_can_be_replayed(server: Server) -> None:
    is_broken = True

    def answer(delivery: Delivery, place: int) -> Reply:
        return Reply(500, body=b"sorry") if is_broken and 1 in delivery.sequences else Reply()

    with receiving(answer) as receiver:
        hooked = Hooked(server, "dead", receiver.url(), batch=1)
        hooked.publish(1, 2, 3)
        found = receiver.wait_for_note(3)
        assert numbers_in(found) == [1, 1, 1, 2, 3]
        (letter,) = hooked.dead()
        assert (letter["sequence"], letter["tries"], letter["reason"]) == (1, 3, "status 500: sorry")
        assert letter["note"]["event"] == {"who": "dead", "n": 1}
        assert hooked.shown()["dead_letters"] == 1
        is_broken = False
        assert hooked.post("dead-letters/replay", {"sequences": [1, 7]}) == {"replayed": 1}
        found = receiver.wait_for(lambda found: len(found) == 6)
        assert found[5].sequences == [1]
        assert found[5].is_signed(hooked.secret)
        hooked.wait_until(dead_letters=0)


def test_a_replay_that_fails_leaves_the_dead_letters(server: Server) -> None:
    with receiving(lambda delivery, _: Reply(400) if 1 in delivery.sequences else Reply()) as receiver:
        hooked = Hooked(server, "dead-again", receiver.url(), batch=1)
        hooked.publish(1, 2)
        receiver.wait_for_note(2)
        assert hooked.post("dead-letters/replay") == {"replayed": 1}
        assert numbers_in(receiver.wait_for(lambda found: len(found) == 7)) == [1, 1, 1, 2, 1, 1, 1]
        hooked.publish(3)
        receiver.wait_for_note(3)
        assert [each["replaying"] for each in hooked.dead()] == [False]
        assert hooked.post("dead-letters/forget", {}) == {"forgotten": 1}
        assert hooked.dead() == []


def test_too_many_failures_disable_a_webhook(server: Server) -> None:
    is_broken = True
    with receiving(lambda *_: Reply(500) if is_broken else Reply()) as receiver:
        hooked = Hooked(server, "disabled", receiver.url(), batch=1)
        hooked.publish(1, 2, 3)
        found = hooked.wait_until(state="disabled")
        assert found["reason"] == "2 batches in a row could not be delivered; the last: status 500"
        assert [each["sequence"] for each in hooked.dead()] == [1, 2]
        is_broken = False
        assert hooked.post("resume")["state"] == "active"
        assert receiver.wait_for_note(3)[-1].sequences == [3]


def test_a_receiver_that_is_gone_disables_its_webhook(server: Server) -> None:
    with receiving(lambda *_: Reply(410)) as receiver:
        hooked = Hooked(server, "gone", receiver.url())
        hooked.publish(1)
        assert hooked.wait_until(state="disabled")["reason"] == "the receiver says that it is gone (status 410)"
        assert len(receiver.deliveries) == 1
        assert hooked.dead() == []


def test_a_paused_webhook_sends_nothing(server: Server) -> None:
    with receiving() as receiver:
        hooked = Hooked(server, "paused", receiver.url())
        assert hooked.post("pause")["state"] == "paused"
        hooked.publish(1)
        assert receiver.deliveries == []
        hooked.post("resume")
        assert numbers_in(receiver.wait_for_note(1)) == [1]


def test_a_webhook_is_changed_listed_and_removed(server: Server) -> None:
    with receiving() as first, receiving() as second:
        hooked = Hooked(server, "changed", first.url())
        hooked.publish(1)
        first.wait_for_note(1)
        answer = server.client.put(hooked.path, json={"url": second.url()})
        assert (answer.status_code, answer.json()["secret"]) == (200, hooked.secret)
        hooked.publish(2)
        assert second.wait_for_note(2)[-1].is_signed(hooked.secret)
        listed = server.client.get("/v1/webhooks", params={"after": "change", "limit": 1}).json()
        assert [each["url"] for each in listed["webhooks"]] == [second.url()]
        assert listed["next"] == "changed"
        assert hooked.secret not in server.client.get("/v1/webhooks").text
        assert "secret" not in hooked.shown()
        assert server.client.delete(hooked.path).status_code == 204
        assert server.client.get(hooked.path).status_code == 404
        hooked.publish(3)
        assert 3 not in numbers_in(second.deliveries)


def test_a_rotated_secret_signs_beside_the_old_one_for_a_time(server: Server) -> None:
    with receiving() as receiver:
        hooked = Hooked(server, "rotated", receiver.url())
        assert hooked.shown()["old_secret_until"] is None
        answer = hooked.post("rotate")
        new = answer["secret"]
        assert new != hooked.secret
        assert answer["old_secret_until"] is not None
        assert "secret" not in hooked.shown()
        hooked.publish(1)
        message = receiver.wait_for_note(1)[-1]
        assert message.is_signed(hooked.secret)
        assert message.is_signed(new)
        assert len(message.headers["webhook-signature"].split()) == 2
        # A second rotation ends the first one. Without an overlap, only the new secret is left.
        third = hooked.post("rotate", {"overlap": 0})
        assert third["old_secret_until"] is None
        hooked.publish(2)
        message = receiver.wait_for_note(2)[-1]
        assert message.is_signed(third["secret"])
        assert not message.is_signed(new)
        assert not message.is_signed(hooked.secret)
        given = "whsec_" + "B" * 40
        assert hooked.post("rotate", {"secret": given, "overlap": 3600})["secret"] == given


def test_a_secret_that_is_put_replaces_the_others_at_once(server: Server) -> None:
    with receiving() as receiver:
        hooked = Hooked(server, "put-secret", receiver.url())
        hooked.post("rotate")
        given = "whsec_" + "C" * 40
        assert server.client.put(hooked.path, json={"secret": given}).json()["old_secret_until"] is None
        hooked.publish(1)
        (message,) = receiver.wait_for_note(1)
        assert message.is_signed(given)
        assert len(message.headers["webhook-signature"].split()) == 1


def test_wrong_rotations_are_refused(server: Server) -> None:
    client = server.client
    assert client.post("/v1/subscribers/nobody/webhook/rotate").status_code == 404
    with receiving() as receiver:
        hooked = Hooked(server, "unrotated", receiver.url())
        for body, words in [
            ({"overlap": -1}, "`overlap` must be a number of seconds"),
            ({"overlap": "1"}, "`overlap` must be a number of seconds"),
            ({"overlap": True}, "`overlap` must be a number of seconds"),
            ({"overlap": 10**9}, "`overlap` must be a number of seconds"),
            ({"secret": "short"}, "`secret` must be"),
            ({"secrets": 1}, "no field"),
        ]:
            answer = client.post(f"{hooked.path}/rotate", json=body)
            assert answer.status_code == 422, body
            assert words in answer.json()["detail"]
        hooked.publish(1)
        assert receiver.wait_for_note(1)[-1].is_signed(hooked.secret)


def test_metrics_count_what_became_of_messages(server: Server) -> None:
    own = in_tenant(server, "metered")
    with receiving(lambda delivery, _: Reply(500) if 1 in delivery.sequences else Reply()) as receiver:
        hooked = Hooked(own, "metered", receiver.url(), batch=1)
        hooked.publish(1, 2, 3)
        receiver.wait_for_note(3)
        hooked.wait_until_all_is_acknowledged()
        hooked.post("pause")
        found = own.client.get("/v1/figures").json()["webhooks"]
        assert found == {
            "deliveries": 2, "notes": 2, "failures": 3, "dead": 1,
            "states": {"active": 0, "paused": 1, "disabled": 0}, "dead_letters": 1,
        }  # fmt: skip
        text = own.client.get("/metrics").text
        for line in (
            'tamis_webhook_deliveries_total{tenant="metered"} 2',
            'tamis_webhook_failures_total{tenant="metered"} 3',
            'tamis_webhook_dead_letters_total{tenant="metered"} 1',
            'tamis_kept_dead_letters{tenant="metered"} 1',
            'tamis_webhook_seconds_count{tenant="metered"} 5',
            'tamis_webhooks{tenant="metered",state="paused"} 1',
        ):
            assert line in text


def test_wrong_webhooks_are_refused(server: Server) -> None:
    client = server.client
    client.put("/v1/subscribers/wrong/subscriptions/x", json={"expression": "wrong = 1"})
    path = "/v1/subscribers/wrong/webhook"
    assert client.put("/v1/subscribers/nobody/webhook", json={"url": "https://example.com"}).status_code == 404
    for body, words in [
        ({}, "needs `url`"),
        ({"url": "ftp://example.com"}, "must begin with https://"),
        ({"url": "https://user:word@example.com"}, "user"),
        ({"url": "https://example.com/#x"}, "fragment"),
        ({"url": "https://exam ple.com"}, "ASCII"),
        ({"url": "https://example.com:99999"}, "cannot be read"),
        ({"url": "https://10.0.0.1/"}, "private address"),
        ({"url": "http://[::ffff:10.0.0.1]/"}, "private address"),
        ({"url": "http://8.8.8.8/"}, "must begin with https://"),
        ({"url": "https://8.8.8.8/", "secret": "short"}, "`secret` must be"),
        ({"url": "https://8.8.8.8/", "batch": 0}, "`batch` must be"),
        ({"url": "https://8.8.8.8/", "size": 1}, "no field 'size'"),
    ]:
        answer = client.put(path, json=body)
        assert answer.status_code == 422, body
        assert words in answer.json()["detail"]
    assert client.get(path).status_code == 404


def test_redirects_are_followed_if_they_keep_the_body(server: Server) -> None:
    with receiving() as other:
        with receiving(lambda *_: Reply(307, {"Location": other.url("/there")})) as receiver:
            hooked = Hooked(server, "redirected", receiver.url())
            hooked.publish(1)
            (found,) = other.wait_for_note(1)
            assert found.path == "/there"
            assert found.is_signed(hooked.secret)
        with receiving(lambda *_: Reply(302, {"Location": other.url("/never")})) as receiver:
            hooked = Hooked(server, "redirected-302", receiver.url())
            hooked.publish(1)
            assert hooked.wait_until(dead_letters=1)["reason"] == "status 302"
        assert len(other.deliveries) == 1


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("https://10.0.0.1/", "10.0.0.1 is the private address 10.0.0.1"),
        ("http://169.254.169.254/latest", "private address"),
        ("http://8.8.8.8/", "must begin with https://"),
        ("ftp://example.com/", "the redirect is wrong"),
    ],
)
def test_redirects_to_forbidden_places_are_refused(server: Server, place: str, reason: str) -> None:
    with receiving(lambda *_: Reply(307, {"Location": place})) as receiver:
        hooked = Hooked(server, f"misled-{abs(hash(place))}", receiver.url())
        hooked.publish(1)
        assert reason in hooked.wait_until(dead_letters=1)["reason"]


def test_a_closed_connection_is_opened_again(server: Server) -> None:
    with receiving(lambda *_: Reply(200, {"Connection": "close"}, b"ok")) as receiver:
        hooked = Hooked(server, "closing", receiver.url())
        for number in range(1, 4):
            hooked.publish(number)
            receiver.wait_for_note(number)
        assert numbers_in(receiver.deliveries) == [1, 2, 3]
        assert hooked.shown()["reason"] == ""


def test_the_webhook_goes_with_its_subscriber(server: Server) -> None:
    with receiving() as receiver:
        hooked = Hooked(server, "removed", receiver.url())
        assert server.client.delete("/v1/subscribers/removed").status_code == 204
        assert server.client.get(hooked.path).status_code == 404


def test_certificates_are_checked(server: Server, tmp_path: Path) -> None:
    with receiving(certificate=CERTIFICATE) as receiver:
        good = Hooked(server, "good", receiver.url(host="localhost"))
        good.publish(1)
        assert receiver.wait_for_note(1)[-1].is_signed(good.secret)
        other_name = Hooked(server, "other-name", receiver.url())
        other_name.publish(1)
        assert "certificate is not valid" in other_name.wait_until(dead_letters=1)["reason"]
        file = next(server.folder.rglob("webhooks.sqlite"))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with receiving(certificate=new_certificate(tmp_path, "DNS:localhost")) as stranger:
        unknown = Hooked(server, "unknown", stranger.url(host="localhost"))
        unknown.publish(1)
        assert "certificate is not valid" in unknown.wait_until(dead_letters=1)["reason"]
        assert stranger.deliveries == []


class TestRestarts:
    """What was published is delivered, whatever happens to the process."""

    @pytest.fixture
    def flags(self, tmp_path: Path) -> tuple[Any, ...]:
        return (tmp_path / "served", "--config", settings_file(tmp_path))

    def test_a_killed_service_goes_on_where_it_was(self, flags: tuple[Any, ...]) -> None:
        released = threading.Event()
        calls = 0

        def answer(delivery: Delivery, place: int) -> Reply:
            nonlocal calls
            calls += 1
            if calls == 5:
                released.wait(PATIENCE)  # The service is killed while this message is under way.
            return Reply()

        with receiving(answer) as receiver:
            server = Server(*flags)
            hooked = Hooked(server, "ann", receiver.url(), batch=10)
            hooked.publish(*range(100))
            receiver.wait_for(lambda found: len(found) == 5)
            server.kill()
            before = len(receiver.deliveries)
            released.set()
            with serving(*flags) as again:
                found = receiver.wait_for_note(100)
                assert set(numbers_in(found)) == set(range(1, 101))
                after = numbers_in(found[before:])
                assert after == list(range(after[0], 101))
                assert after[0] <= 41
                assert all(each.is_signed(hooked.secret) for each in found)
                assert again.client.get(hooked.path).json()["state"] == "active"

    @pytest.mark.long
    def test_tries_and_dead_letters_outlive_a_kill(self, flags: tuple[Any, ...]) -> None:
        with receiving(lambda delivery, _: Reply(500) if delivery.sequences[0] < 3 else Reply()) as receiver:
            server = Server(*flags)
            hooked = Hooked(server, "ann", receiver.url(), batch=1)
            hooked.publish(1, 2)
            hooked.wait_until(state="disabled")
            server.kill()
            with serving(*flags) as again:
                hooked.server = again
                assert hooked.shown()["state"] == "disabled"
                assert [each["sequence"] for each in hooked.dead()] == [1, 2]
                hooked.publish(3)
                hooked.post("resume")
                assert receiver.wait_for_note(3)[-1].sequences == [3]
                assert len(receiver.deliveries) == 7

    @pytest.mark.long
    def test_a_service_that_ends_in_peace_sends_nothing_twice(self, flags: tuple[Any, ...]) -> None:
        with receiving() as receiver:
            server = Server(*flags)
            hooked = Hooked(server, "ann", receiver.url(), batch=3)
            hooked.publish(*range(30))
            receiver.wait_for(lambda found: len(found) >= 2)
            server.stop()
            with serving(*flags):
                assert numbers_in(receiver.wait_for_note(30)) == list(range(1, 31))


def test_a_receiver_that_is_away_for_a_while_misses_nothing(server: Server) -> None:
    receiver = Receiver(lambda *_: Reply())
    hooked = Hooked(server, "away", receiver.url())
    hooked.publish(1)
    receiver.wait_for_note(1)
    receiver.close()
    hooked.post("pause")
    hooked.publish(2)
    with receiving() as other:
        server.client.put(hooked.path, json={"url": other.url()})
        hooked.post("resume")
        assert numbers_in(other.wait_for_note(2)) == [2]
