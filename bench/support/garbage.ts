import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/**
 * Collects what earlier samples left behind. Called before each sample where samples leave tens of megabytes: else
 * whoever comes next pays for it, and a process that does the thing once would not.
 */
export const collectGarbage = runInNewContext('gc') as () => void;
