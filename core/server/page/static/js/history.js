// The throughput of the last hour, minute by minute, as the server tells it.

const minuteLong = 60_000;
const minutesShown = 60;

/**
 * hourOf returns the sixty minutes up to now, oldest first, each as {minute,
 * decode, prefill}: its start in ms, and the rates while the engine was at it,
 * in tokens a second, or null where it was not.
 */
export function hourOf({ at, minutes }) {
  const worked = new Map(minutes.map((m) => [Date.parse(m.start), m]));
  const last = Math.floor(Date.parse(at) / minuteLong) * minuteLong;
  return Array.from({ length: minutesShown }, (_, i) => {
    const minute = last - (minutesShown - 1 - i) * minuteLong;
    const m = worked.get(minute);
    return { minute, decode: rateOf(m?.decode), prefill: rateOf(m?.prefill) };
  });
}

const rateOf = (work) => (work?.seconds > 0 ? work.tokens / work.seconds : null);

/** beganAt is when the server started, in ms, where that is within the hour; else null. */
export function beganAt(status) {
  const start = Date.parse(status.started_at);
  return Date.parse(status.throughput.hour.at) - start < minutesShown * minuteLong ? start : null;
}
