export { type LinkedAbort, linkedAbort, Releasers, sleep } from './abort.ts';
export { messageOf, ParleyError, type Refusal, refusal } from './errors.ts';
export { FULL_BELOW, freeBytes, fullDiskError, LITTLE_ROOM, makeDirectory } from './files.ts';
export { escapeHidden, inOneLine, visibleArguments, visibleCall, visibleText } from './hidden.ts';
export { createIdSource, type NewId } from './ids.ts';
export { isJson, isShallow, jsonFault, MAX_DEPTH } from './json.ts';
export { coalesce, Mailbox } from './mailbox.ts';
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
export { isOverdue } from './overdue.ts';
export { openPrivate, openTemporary, UNLINKED, writePrivateFile } from './private-file.ts';
export { expectationOf, fieldFault, infinityAt, shown, valueAt } from './schema-fault.ts';
export { refuseOtherPrefix } from './subject-prefix.ts';
export { decodeUtf8, foldCase, foldPath, hasLoneSurrogate, hasVisible } from './text.ts';
export {
  type Clock,
  DURATION_FORM,
  DURATION_PATTERN,
  durationOf,
  inTime,
  isAtLeast,
  monotonicClock,
  systemClock,
} from './time.ts';
export { isBareServer, splitUrls } from './url-list.ts';
export { VERSION } from './version.ts';
