import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { messageOf } from './errors.ts';
import { inOneLine } from './hidden.ts';
import { infinityAt, isRecord, isShallow, type JsonRecord, MAX_DEPTH } from './json.ts';
import { linearPattern } from './linear-pattern.ts';
import { shown } from './schema-fault.ts';
import { cut, hasLoneSurrogate, percentDecoded } from './text.ts';
import { type Clock, inTime } from './time.ts';

/**
 * JSON Schemas of strangers, and values checked against them: arguments of tools, answers of models.
 *
 * JSON-SCHEMA-1 A schema can be hostile: one that refers to itself twice takes exponential time. Each check runs in a budget of
 *    processor time, patterns in linear time (LINEAR-PATTERN).
 * JSON-SCHEMA-2 Draft 2020-12; draft 7 if only that accepts the schema. Each schema has a validator of its own: two may use one `$id`.
 * JSON-SCHEMA-3 References are pointers into the schema itself. Nothing is fetched.
 */

/** Processor time for the checks of one source. They block the process. Nothing is checked while there is no time left. */
export class CheckBudget {
  readonly #elapsed: Clock;
  #leftMs = BUDGET_MS;
  #at: number;

  constructor(elapsed: Clock) {
    this.#elapsed = elapsed;
    this.#at = elapsed();
  }

  /** Undefined: no time is left. Null: there was not enough, or the work threw (a value nested too deeply). */
  spend<Result>(work: () => Result): Result | null | undefined {
    prepareDrafts();
    const start = this.#elapsed();
    this.#leftMs = Math.min(BUDGET_MS, this.#leftMs + (start - this.#at) * REFILL);
    this.#at = start;
    if (this.#leftMs < 1) return undefined;
    const before = process.cpuUsage();
    try {
      return inTime(work, Math.floor(this.#leftMs));
    } catch {
      return null;
    } finally {
      const { user, system } = process.cpuUsage(before);
      this.#leftMs -= Math.min(this.#elapsed() - start, (user + system) / 1_000); // on a busy machine, little of it is ours
    }
  }
}

const BUDGET_MS = 1_000;
/** The part of the passing time that is added to the budget. */
const REFILL = 0.01;

/** Characters of JSON. */
export const MAX_SCHEMA = 65_536;
/** Faults that are listed, and characters of each. */
const MOST_FAULTS = 10;
const MOST_OF_FAULT = 300;

/** Null: the value is right. Else what is wrong, in words for its author. Undefined: it could not be checked. */
export type ValueCheck = (value: unknown) => string | null | undefined;

/** Compiled at first use. `name` is how faults call the value. */
export function valueCheck(schema: JsonRecord, budget: CheckBudget, name: string): ValueCheck {
  let validate: ValidateFunction | undefined;
  return (value) => {
    validate ??= budget.spend(() => compiled(schema)) ?? undefined; // without enough time: at the next use
    const check = validate;
    if (!check) return undefined;
    const isRight = budget.spend(() => check(value));
    if (isRight === undefined || isRight === null) return undefined;
    return isRight ? null : faultsOf(check.errors ?? [], name);
  };
}

/** Why values cannot be checked against this schema: what, where, what to do. Null: they can. */
export function schemaFault(schema: unknown, budget: CheckBudget): string | null {
  if (!isRecord(schema)) return `a schema is an object such as { "type": "object" }, not ${shown(schema)}`;
  const fault = shapeFault(schema);
  if (fault !== null) return fault;
  const length = JSON.stringify(schema).length;
  if (length > MAX_SCHEMA)
    return `the schema has ${length} characters, and at most ${MAX_SCHEMA} are accepted: use a smaller one`;
  const found = budget.spend(() => ({ text: draftOf(schema).fault ?? useFault(schema) }));
  return found ? found.text : TOO_SLOW;
}

const TOO_SLOW =
  'checking the schema takes too long: use fewer alternatives, and no definition that refers to itself twice';

/** What needs no compilation: readable by every provider, and complete. */
export function shapeFault(schema: JsonRecord): string | null {
  if (!isShallow(schema))
    return `the schema is nested deeper than ${MAX_DEPTH} levels: flatten it with $defs`;
  const infinite = infinityAt(schema);
  if (infinite !== null) return `the number ${infinite} is too large`;
  const key = unsafeTextAt(schema, '');
  if (key !== null) return key;
  const dangling = refsOf(schema).find((ref) => !resolves(schema, ref));
  return dangling === undefined
    ? null
    : `the schema refers to ${shown(dangling)}, which it does not contain: copy it into $defs, and refer to "#/$defs/NAME"`;
}

/** Why a value cannot be kept whatever its schema; null: it can. */
export function valueFault(value: unknown): string | null {
  if (!isShallow(value)) return `it is nested deeper than ${MAX_DEPTH} levels`;
  const infinite = infinityAt(value);
  return infinite === null ? unsafeTextAt(value, '') : `the number ${infinite} is too large`;
}

/** By the schema of schemas. Null: it accepts this one. */
export function draftFault(schema: JsonRecord): string | null {
  return draftOf(schema).fault;
}

type Draft = '2020' | '7';

const OPTIONS: Options = {
  strict: false,
  allErrors: true,
  ownProperties: true, // `__proto__` is a name like others
  inlineRefs: false, // else a large definition is compiled once for each reference to it
  logger: false,
  code: { regExp: Object.assign(patternOfSchema, { code: 'patternOfSchema' }) },
};

/** Throws for a pattern without a linear form. `toString`: Ajv's key. */
function patternOfSchema(source: string) {
  try {
    return { ...linearPattern(source), toString: () => `/${source}/` };
  } catch (error) {
    const advice = 'write it without lookahead, backreferences and large repeats';
    throw new Error(`the pattern ${shown(source)}: ${messageOf(error)}; ${advice}`);
  }
}

function newAjv(draft: Draft, options: Options = {}): Ajv {
  const ajv = draft === '7' ? new Ajv({ ...OPTIONS, ...options }) : new Ajv2020({ ...OPTIONS, ...options });
  (formats as unknown as typeof formats.default)(ajv);
  return ajv;
}

/** They keep nothing of what they check. Creating one takes longer than many checks. */
const metas = new Map<Draft, Ajv>();

function metaFault(schema: JsonRecord, draft: Draft): string | null {
  const ajv = metas.get(draft) ?? newAjv(draft, { allErrors: false });
  metas.set(draft, ajv);
  const { $schema, $async, ...rest } = schema;
  if (ajv.validateSchema(rest)) return null;
  const [first] = ajv.errors ?? [];
  if (!first) return 'the schema is invalid';
  const seen = shown(pointedAt(rest, first.instancePath));
  return `the schema is invalid: ${faultText(first, 'schema')}, got ${seen}`;
}

/** The schemas of schemas are compiled once, and not in the time of a check: on a busy machine that alone takes a second. */
function prepareDrafts(): void {
  if (metas.size === 0) for (const draft of ['2020', '7'] as const) metaFault({}, draft);
}

function draftOf(schema: JsonRecord): { readonly draft: Draft; readonly fault: string | null } {
  const fault = metaFault(schema, '2020');
  if (fault === null) return { draft: '2020', fault };
  return metaFault(schema, '7') === null ? { draft: '7', fault: null } : { draft: '2020', fault };
}

/** Without `$async`: an asynchronous check would reject unhandled, which ends the process. */
function compiled(schema: JsonRecord): ValidateFunction {
  const { $schema, $async, ...rest } = schema;
  return newAjv(draftOf(schema).draft, { validateSchema: false, meta: false }).compile(rest);
}

/** What compilation refuses, and references that never reach a value: found by a value of each type. */
function useFault(schema: JsonRecord): string | null {
  let check: ValidateFunction;
  try {
    check = compiled(schema);
  } catch (error) {
    if (isEndless(error)) return ENDLESS;
    return `the schema cannot be used: ${inOneLine(cut(messageOf(error), MOST_OF_FAULT))}`;
  }
  try {
    for (const value of [{}, [], '', 0, true, null]) check(value);
    return null;
  } catch (error) {
    if (!isEndless(error)) throw error;
    return ENDLESS;
  }
}

const ENDLESS =
  'the schema refers to itself without an end: a reference needs a property or an item between it and itself';

/** The stack overflows when it is compiled, if references lead only to each other; else when a value is checked. */
function isEndless(error: unknown): boolean {
  return /stack/i.test(messageOf(error));
}

function faultsOf(errors: readonly ErrorObject[], name: string): string {
  const texts = [...new Set(errors.slice(0, MOST_FAULTS * 4).map((error) => faultText(error, name)))];
  const more = errors.length > MOST_FAULTS ? `, and ${errors.length - MOST_FAULTS} more` : '';
  return `${texts.slice(0, MOST_FAULTS).join(', ')}${more}`;
}

/** `answer/path must be string`: the value as a pointer, and Ajv's words with what they leave out. */
function faultText({ instancePath, message = 'is not accepted', params }: ErrorObject, name: string): string {
  const { additionalProperty, unevaluatedProperty, allowedValues, allowedValue } = params;
  const detail = additionalProperty ?? unevaluatedProperty ?? allowedValues ?? allowedValue;
  const text = `${name}${instancePath} ${message}${detail === undefined ? '' : `: ${shown(detail)}`}`;
  return inOneLine(cut(text, MOST_OF_FAULT));
}

/** Texts that are not UTF-8, and the name that JavaScript reads as a prototype. */
function unsafeTextAt(value: unknown, at: string): string | null {
  if (typeof value === 'string')
    return hasLoneSurrogate(value) ? `${at || 'the text'} has half a character (a lone surrogate)` : null;
  if (typeof value !== 'object' || value === null) return null;
  for (const [key, inner] of Object.entries(value)) {
    if (key === '__proto__') return `${at || '/'} has the name __proto__: use another name`;
    if (hasLoneSurrogate(key)) return `a name in ${at || '/'} has half a character (a lone surrogate)`;
    const fault = unsafeTextAt(inner, cut(`${at}/${key}`, MOST_OF_FAULT));
    if (fault !== null) return fault;
  }
  return null;
}

function refsOf(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    /^\$(?:ref|dynamicRef|recursiveRef)$/.test(key) && typeof inner === 'string' ? [inner] : refsOf(inner),
  );
}

/** Only pointers into the schema itself: `#/$defs/file`. */
function resolves(schema: JsonRecord, ref: string): boolean {
  return /^#(?:\/|$)/.test(ref) && pointedAt(schema, ref) !== undefined;
}

/** Undefined: nothing is there. */
function pointedAt(value: unknown, pointer: string): unknown {
  const keys = pointer.split('/').slice(1);
  return keys.reduce<unknown>((inner, key) => {
    const plain = percentDecoded(key).replaceAll('~1', '/').replaceAll('~0', '~');
    const isThere = typeof inner === 'object' && inner !== null && Object.hasOwn(inner, plain);
    return isThere ? Reflect.get(inner, plain) : undefined;
  }, value);
}
