import { it } from 'vitest';
import { hasLongTests } from './runs.ts';

/** A test that runs with the long ones alone. */
export const itLong = it.runIf(hasLongTests);
