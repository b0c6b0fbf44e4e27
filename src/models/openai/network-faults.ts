import { UNRESOLVED } from '../../kernel/index.ts';
import type { Fault } from './faults.ts';

/** Network errors, identified by the chain of causes. */
const BY_CODE: Readonly<Record<string, { code: string; what: string; retryable: boolean }>> = {
  ECONNREFUSED: {
    code: 'NETWORK_ERROR',
    what: 'Nothing listens at {url}. Is it running? Check baseURL.',
    retryable: true,
  },
  ENOTFOUND: {
    code: 'NETWORK_ERROR',
    what: `The host of {url} is unknown: its name ${UNRESOLVED}. Check baseURL and the network.`,
    retryable: true,
  },
  EAI_AGAIN: {
    code: 'NETWORK_ERROR',
    what: `The host of {url} cannot be looked up now: its name ${UNRESOLVED}. Check the network.`,
    retryable: true,
  },
  ECONNRESET: { code: 'NETWORK_ERROR', what: '{url} closed the connection. Try again.', retryable: true },
  ETIMEDOUT: {
    code: 'TIMEOUT',
    what: '{url} cannot be reached in time. Check baseURL and the network.',
    retryable: true,
  },
  COMPRESSED: {
    code: 'INVALID_RESPONSE',
    what: '{url} compressed its answer, which the request excludes. Turn compression off at the provider or the proxy before it.',
    retryable: false,
  },
};

const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_TLS|ERR_SSL|EPROTO/;

/** `url` is shown to people and must have no credentials. */
export function faultOfNetwork(error: unknown, url: string): Fault {
  const causes = causesOf(error);
  const codes = causes.map((cause) => ('code' in cause ? String(cause.code) : ''));
  const known = codes.map((code) => BY_CODE[code]).find((row) => row !== undefined);
  if (known) {
    return { code: known.code, message: known.what.replace('{url}', () => url), retryable: known.retryable };
  }
  const last = causes.at(-1)?.message ?? String(error);
  if (codes.some((code) => CERTIFICATE.test(code))) {
    return {
      code: 'NETWORK_ERROR',
      message: `No secure connection to ${url}: ${last}. Check baseURL and its certificate.`,
      retryable: false,
    };
  }
  return {
    code: 'NETWORK_ERROR',
    message: `The connection to ${url} failed: ${last}. Check baseURL and the network.`,
    retryable: true,
  };
}

/** An error and its causes. An AggregateError (several addresses) is followed by its first error. */
function causesOf(error: unknown): Error[] {
  const causes: Error[] = [];
  let current = error;
  while (current instanceof Error && causes.length < 8) {
    causes.push(current);
    current = current.cause ?? (current instanceof AggregateError ? current.errors[0] : undefined);
  }
  return causes;
}
