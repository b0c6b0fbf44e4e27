/** A time in milliseconds. Injected, so that the core stays pure. */
export type Clock = () => number;

/** Milliseconds since the epoch. An operator may set this clock at any time: for dates only, never for durations. */
export const systemClock: Clock = () => Date.now();

/** Milliseconds since some moment of this process. Nothing sets this clock: for durations and deadlines. */
export const monotonicClock: Clock = () => performance.now();
