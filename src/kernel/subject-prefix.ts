import { ParleyError } from './errors.ts';

/**
 * Refuses a stream whose subjects differ from `wanted` in their prefix alone: prefixes that differ in case, or in `.` and
 * `_`, share stream names, and each daemon would take the other's subjects away.
 */
export function refuseOtherPrefix(stream: string, subjects: readonly string[], wanted: string): void {
  const tail = /\.[a-z]+(\.\*)*$/.exec(wanted)?.[0] ?? wanted;
  const other = subjects.find((subject) => subject !== wanted && subject.endsWith(tail));
  if (other === undefined || subjects.includes(wanted)) return;
  const [theirs, ours] = [other, wanted].map((subject) => subject.slice(0, -tail.length));
  throw new ParleyError(
    'STREAM_CONFIG_CONFLICT',
    `stream ${stream} belongs to the subject prefix ${theirs}, not to ${ours}; nothing was changed`,
    {
      hint: `set subjectPrefix to ${theirs} to use this stream, or to a prefix that differs in more than case`,
    },
  );
}
