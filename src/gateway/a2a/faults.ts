import {
  A2AError,
  ContentTypeNotSupportedError,
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotCancelableError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/errors';
import { publicErrorOf } from '../problem.ts';

/** Maps refusals to the protocol's errors. The message keeps the documented code. */

type ErrorClass = new (options: {
  message: string;
  cause: unknown;
  metadata: Record<string, string>;
}) => A2AError;

const CLASSES: Readonly<Record<string, ErrorClass>> = {
  TASK_NOT_FOUND: TaskNotFoundError,
  TASK_NOT_CANCELABLE: TaskNotCancelableError,
  TASK_TAKES_NO_INPUT: UnsupportedOperationError,
  UNSUPPORTED_OPERATION: UnsupportedOperationError,
  CONTENT_NOT_SUPPORTED: ContentTypeNotSupportedError,
  PUSH_NOT_SUPPORTED: PushNotificationNotSupportedError,
};

/** Errors that another request cannot avoid. */
const OURS = new Set([
  'INTERNAL',
  'NOT_READY',
  'STOPPING',
  'BUS_CLOSED',
  'BROKER_UNAVAILABLE',
  'POST_WAITS',
  'TOO_SLOW',
]);

export function faultOf(error: unknown, onFault: (error: unknown) => void): Error {
  if (error instanceof A2AError) return error;
  const shown = publicErrorOf(error, onFault);
  const { code, hint } = shown;
  const message = `${code}: ${shown.message}${hint ? ` (${hint})` : ''}`;
  const Fault = CLASSES[code] ?? (OURS.has(code) ? A2AError : RequestMalformedError);
  return new Fault({ message, cause: error, metadata: { code } });
}
