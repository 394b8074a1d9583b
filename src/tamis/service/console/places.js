// Addresses behind #, so that every place of the console can be bookmarked and opened in another tab.

const encode = (text) => {
  try {
    return encodeURIComponent(text);
  } catch {
    return ""; // A lone surrogate, which no address can hold.
  }
};

/** The editor with a subscription, perhaps explained with a stored event. */
export function subscriptionPlace(subscriber, name, event = null) {
  const place = `#subscriptions/${encode(subscriber)}/${encode(name)}`;
  return event === null ? place : `${place}/${event}`;
}

/** The notes of a subscriber. */
export const livePlace = (subscriber) => `#live/${encode(subscriber)}`;
