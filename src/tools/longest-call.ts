/** How long a call of a tool may take in all, whoever runs it. */
export const LONGEST_CALL_MS = 900_000;
