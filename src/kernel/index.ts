/**
 * Helpers without a domain word that at least two folders use. Imports no other folder.
 *
 *   errors, schema-fault      errors for people; what is wrong with a value
 *   json, text, hidden        checks and display of untrusted text
 *   linear-pattern            regular expressions of operators and strangers
 *   time, ids                 clocks, time limits, ids (injected, so that the core is pure)
 *   log                       the log of the program
 *   package                   the folder and the version of this package
 *   hide-values               secret values in what is shown
 *   abort, mailbox            cancellation, release order, batching
 *   files, open-to-others     directories, disk space, files of one owner, permissions
 *   nats-names                server lists and subject prefixes
 *   one-time-code             proof of knowledge of a key, accepted once
 *   traceparent               the trace context that messages carry
 */
export { abortable, type LinkedAbort, linkedAbort, Releasers, sleep, within } from './abort.ts';
export { asError, errnoOf, messageOf, ParleyError, type Refusal, refusal, UNRESOLVED } from './errors.ts';
export {
  FULL_DISK_BYTES,
  freeBytes,
  fullDiskError,
  LOW_DISK_BYTES,
  makeDirectory,
  openPrivate,
  orNullIfMissing,
  replaceFile,
  syncDirectory,
  UNLINKED,
} from './files.ts';
export {
  canonicalArguments,
  escapeHidden,
  inOneLine,
  visibleArguments,
  visibleCall,
  visibleText,
} from './hidden.ts';
export { type HideValues, hideInside, hideValues } from './hide-values.ts';
export { createIdSource, type NewId } from './ids.ts';
export {
  infinityAt,
  isJson,
  isRecord,
  isShallow,
  type JsonRecord,
  jsonFault,
  MAX_DEPTH,
  parseJson,
  readArguments,
  stringOf,
} from './json.ts';
export { type LinearPattern, linearPattern } from './linear-pattern.ts';
export type { Log } from './log.ts';
export { coalesce, Mailbox } from './mailbox.ts';
export { isBareServer, refuseOtherPrefix, splitUrls, urlWithoutSecrets } from './nats-names.ts';
export { OneTimeCodes, oneTimeCode } from './one-time-code.ts';
export {
  closeData,
  findForeign,
  findForeignData,
  findOpen,
  findOpenData,
  findReplaceable,
  WRITING_BY_ALL,
  WRITING_BY_OTHERS,
} from './open-to-others.ts';
export { PACKAGE, VERSION } from './package.ts';
export { expectationOf, fieldFault, shown, valueAt } from './schema-fault.ts';
export {
  cut,
  decodeUtf8,
  foldCase,
  foldPath,
  hasLoneSurrogate,
  hasVisible,
  nearest,
  wellFormed,
} from './text.ts';
export {
  type Clock,
  DURATION_FORM,
  DURATION_PATTERN,
  durationOf,
  inTime,
  isAtLeast,
  isOverdue,
  isTimeout,
  MAX_TIMER_MS,
  monotonicClock,
  systemClock,
  systemTimers,
  type Timers,
} from './time.ts';
export { parseTraceparent, TRACEPARENT, type TraceContext, traceparentOf } from './traceparent.ts';
