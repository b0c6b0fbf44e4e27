/** The current time in milliseconds since the epoch. Injected, so that the core stays pure. */
export type Clock = () => number;

export const systemClock: Clock = () => Date.now();
