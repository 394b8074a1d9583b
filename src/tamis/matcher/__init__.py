"""The matcher: subscriptions come and go, events are matched against all of them."""
