import type { z } from 'zod';
import { fieldFault, fieldOf, ParleyError, type Refusal } from '../kernel/index.ts';
import type { Request } from './context.ts';

/** The fields of a request in a standard protocol: what is refused, what is taken, and headers for what has no effect. */

const REFUSED = { code: 'BAD_REQUEST', hint: 'docs/guides/standard-protocols.md says what is taken' };

class FieldRefused extends ParleyError {
  /** As OpenAI names it: `messages.0.content`. */
  readonly param: string | null;

  constructor(where: string, problem: string, { code, hint }: Pick<Refusal, 'code' | 'hint'> = REFUSED) {
    super(code, problem, { ...(hint && { hint }) });
    this.param = where === '' ? null : where;
  }
}

/** `as`: with the code and the next step of another refusal. */
export function refusedField(where: string, problem: string, as?: ParleyError): ParleyError {
  return new FieldRefused(where, `${where}: ${problem}`, as);
}

/** `named`: the field of the request for a path in the body, where the body was made from it. */
export function parsedBody<S extends z.ZodType>(
  schema: S,
  body: unknown,
  named: (path: string) => string = (path) => path,
): z.infer<S> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = issue ? named(fieldOf(issue)) : '';
  throw new FieldRefused(field, issue ? fieldFault(issue, body, field) : 'not understood');
}

const UNUSED_HEADER = 'x-parley-unused';
/** The names in a message that mention no agent, for its sender. */
const UNKNOWN_MENTIONS_HEADER = 'x-parley-unknown-mentions';

/** Clients always send empty fields. */
export function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === '') return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

/** The fields that were sent with a value and are not known. */
export function unusedIn(given: object, known: ReadonlySet<string>): string[] {
  return Object.entries(given).flatMap(([name, value]) => (known.has(name) || isEmpty(value) ? [] : [name]));
}

/** Names of fields come from the client; a header allows only printable ASCII. */
export function nameUnused(context: Request, names: readonly string[]): void {
  if (names.length === 0) return;
  const text = names.join(', ').replaceAll(/[^\x20-\x7e]/g, '?');
  context.header(UNUSED_HEADER, text.slice(0, 1_000));
}

export function nameUnknownMentions(context: Request, names: readonly string[] = []): void {
  if (names.length > 0) context.header(UNKNOWN_MENTIONS_HEADER, names.map(encodeURIComponent).join(', '));
}

/** The fields of the verb `answer` in an object like its body, or with `approved`; null: there is no answer. */
export function verdictIn(given: Readonly<Record<string, unknown>>) {
  const { approved, answer, reason, result, arguments: instead } = given;
  const said = typeof approved === 'boolean' ? (approved ? 'approve' : 'deny') : answer;
  if (typeof said !== 'string') return null;
  return {
    answer: said,
    ...(typeof reason === 'string' && reason !== '' && { reason }),
    ...(result !== undefined && { result }),
    ...(instead !== undefined && { arguments: instead }),
  };
}
